/* Invalid plug-ins: BROKEN selects the fault. In C99, as a vendor's compiler would see plugin.h. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/backend/plugin.h"

#define NO_SYMBOL 1
#define OTHER_MAJOR 2
#define NEWER_MINOR 3
#define LACKS_FUNCTIONS 4
#define CANNOT_START 5
#define SAYS_NOTHING 6
#define NO_NAME 7
#define TWO_TABLES 8
#define CRASHES 9
#define HANGS 10
#define EXITS 11

#if BROKEN == NO_SYMBOL
int not_a_plugin(void) { return 0; }
#else

static TenonBackend tables[2];
static int calls;

const TenonBackend* tenon_plugin(const TenonHost* host, const TenonSink* error) {
  static const char reason[] = "the chip's driver is not installed";
  (void)host;
  if (BROKEN == CRASHES) raise(SIGSEGV);
  while (BROKEN == HANGS) {
  }
  if (BROKEN == EXITS) {
    fputs("no licence was found\n", stderr);
    exit(0);
  }
  if (BROKEN == CANNOT_START) error->write(error->context, reason, strlen(reason));
  if (BROKEN == CANNOT_START || BROKEN == SAYS_NOTHING) return NULL;
  TenonBackend* const table = &tables[BROKEN == TWO_TABLES ? calls++ % 2 : 0];
  table->size = sizeof *table;
  table->abi_major = BROKEN == OTHER_MAJOR ? 77 : TENON_ABI_MAJOR;
  table->abi_minor = BROKEN == NEWER_MINOR ? 99 : TENON_ABI_MINOR;
  table->name = BROKEN == NO_NAME ? NULL : "broken";
  /* An older writer's struct lacks the members of later versions (B1). */
  if (BROKEN == LACKS_FUNCTIONS) table->size = offsetof(TenonBackend, launch);
  return table;
}
#endif
