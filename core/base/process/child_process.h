// The output of a child process and its end, for messages.
#pragma once

#include <string>

namespace tenon {

/// Appends what can be read from `file`, which does not block, and keeps the last `most` bytes.
/// Returns false at the end of the stream.
bool read_available(int file, std::string& text, size_t most);

/// "signal 11 (Segmentation fault); it printed: no licence", or "exit status 1": the end that
/// waitpid() told, and the last line of `printed`.
std::string describe_end(int status, std::string printed);

/// "; it printed: LINE" with the last line of `printed`; empty if there is none.
std::string last_line_note(std::string printed);

}  // namespace tenon
