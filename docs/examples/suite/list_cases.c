/* Lists the cases that match a pattern, in C, without a device. */
#include <conformance/library/suite.h>
#include <stdio.h>

static void print(void* context, const char* bytes, size_t count) {
  fwrite(bytes, 1, count, (FILE*)context);
}

int main(int count, char** arguments) {
  const TenonSink error = {sizeof error, stderr, print};
  TenonSuiteOptions options = {0};
  TenonSuite* suite = NULL;
  options.size = sizeof options;
  options.patterns = (const char* const*)arguments + 1;
  options.pattern_count = (size_t)count - 1;
  if (tenon_suite_open(NULL, 0, &options, &suite, &error) != TENON_OK) return 1;
  for (size_t i = 0; i < tenon_suite_size(suite); ++i) puts(tenon_suite_case(suite, i));
  /* Without a plug-in no case runs, and the error says why. */
  if (tenon_suite_run(suite, 0, NULL, &error) != TENON_FAILED_PRECONDITION) return 1;
  tenon_suite_close(suite);
  return 0;
}
