/* The conformance suite as a library, for a vendor's own test program: libtenon_conformance.so,
 * pkg-config `tenon-conformance` (docs/conformance.md, "As a library").
 *
 * A suite is a selection of the cases, and a device to run them on. Cases run in this process, so
 * that a debugger or a sanitizer sees the backend at work; a case that crashes ends the process.
 * `tenon conform` runs them in worker processes instead.
 *
 * All structs begin with their size, which the caller sets; members are only appended. Texts are
 * UTF-8. Errors are codes of plugin.h, with one sentence in the sink.
 *
 * Thread-safety: one suite is used by one thread at a time; several suites of one device are not
 * used at the same time.
 */
#ifndef TENON_CONFORMANCE_LIBRARY_SUITE_H_
#define TENON_CONFORMANCE_LIBRARY_SUITE_H_

#include "core/backend/plugin.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Members that are null or 0 have the meaning of an option of `tenon conform` that is not given. */
typedef struct TenonSuiteOptions {
  size_t size;
  const char* const* patterns; /* Names of cases, with '*' and '?'; none: all cases. */
  size_t pattern_count;
  const char* const* excluded; /* Patterns of cases that are left out. */
  size_t excluded_count;
  const char* tier;        /* "smoke", "quick" or "full". */
  const char* profile;     /* "minimal", "inference", "training", "full", or a file. */
  const char* declaration; /* A file: what the device does not support, bounds that it relaxes. */
  const char* waivers;     /* A file: failures that are known. */
  /* The plug-in's file, which the cases of `abi/` open. Null: these are left out. */
  const char* plugin_path;
  uint64_t seed;     /* Of the values. */
  uint8_t no_reduce; /* 1: programs that fail are not reduced, which takes seconds each. */
} TenonSuiteOptions;

/* The result of a case. Texts are valid until the suite's next call. */
typedef struct TenonSuiteResult {
  size_t size;
  uint8_t failed;      /* Whether a run fails as a whole because of this case. */
  const char* outcome; /* "pass", "fail", "not-supported", … (docs/conformance.md, "Outcomes"). */
  const char* text;    /* For people: empty, or the failure in full. */
  const char* record;  /* JSON: the case's entry of the report ("Reports"). */
} TenonSuiteResult;

typedef struct TenonSuite TenonSuite;

/* Selects cases. `plugin` is the function that a plug-in exports: tenon_plugin of the program
 * itself, or from dlsym. The device is opened by the first case that runs; a suite that only lists
 * cases needs none, and `plugin` may be null. `device` is an index into the backend's devices.
 * `options` may be null. Errors: a file is wrong, a tier or profile does not exist, a waiver has
 * expired, no case matches. */
TenonCode tenon_suite_open(TenonPluginFunction plugin, size_t device,
                           const TenonSuiteOptions* options, TenonSuite** suite,
                           const TenonSink* error);
/* Closes the device too. Null is allowed. */
void tenon_suite_close(TenonSuite* suite);

/* The selected cases, in the order of the suite. Names are valid as long as the suite, and the same
 * in every release that has the case. */
size_t tenon_suite_size(const TenonSuite* suite);
const char* tenon_suite_case(const TenonSuite* suite, size_t index);

/* Runs a case; there is no time limit. A failure of the case is a result, not an error. Errors:
 * there is no such case; the device does not open. */
TenonCode tenon_suite_run(TenonSuite* suite, size_t index, TenonSuiteResult* result,
                          const TenonSink* error);

/* Writes a report of the cases that ran, the last run of each: JSON, JUnit XML or a page, by the
 * path's end (.json, .xml, .html). Errors: another end; those of the file system. */
TenonCode tenon_suite_write(const TenonSuite* suite, const char* path, const TenonSink* error);

#ifdef __cplusplus
}
#endif

#endif
