// The serial form of a recording's entries, for its writer and its reader.
#pragma once

#include "core/backend/layers/record/recording.h"

namespace tenon::backend {

inline constexpr serial::Format kRecordedEntryFormat = {
    "TNRE", "entry of a recording", kRecordingFormat.oldest, kRecordingFormat.newest};
/// Bytes of the length before each entry, least significant byte first.
inline constexpr size_t kLengthBytes = 8;

namespace recorded {

inline void serialize(serial::ArchiveWriter& a, const RecordedBytes& e) {
  a.number(e.bytes.size());
  a.raw(e.bytes);
}
inline void serialize(serial::ArchiveReader& a, RecordedBytes& e) { e.bytes = a.raw(a.count()); }
template <class A>
void serialize(A& a, serial::Of<A, RecordedOpen>& e) {
  a(e.opening, e.backend, e.version, e.device, e.compiler_id, e.target);
}
template <class A>
void serialize(A& a, serial::Of<A, RecordedClose>& e) {
  a(e.opening);
}
template <class A>
void serialize(A& a, serial::Of<A, DeclinedKernel>& e) {
  a(e.kernel, e.reason, e.text);
}
template <class A>
void serialize(A& a, serial::Of<A, RecordedCompile>& e) {
  a(e.target, e.kernels, e.binary, e.declined);
}
template <class A>
void serialize(A& a, serial::Of<A, RecordedLoad>& e) {
  a(e.opening, e.module, e.binary, e.kernels);
}
template <class A>
void serialize(A& a, serial::Of<A, RecordedUnload>& e) {
  a(e.module);
}
template <class A>
void serialize(A& a, serial::Of<A, RecordedAllocate>& e) {
  a(e.opening, e.memory, e.space, e.bytes);
}
template <class A>
void serialize(A& a, serial::Of<A, RecordedFree>& e) {
  a(e.memory);
}
template <class A>
void serialize(A& a, serial::Of<A, RecordedAddress>& e) {
  a(e.memory, e.offset);
}
template <class A>
void serialize(A& a, serial::Of<A, RecordedCopy>& e) {
  a(e.opening, e.queue, e.destination, e.source, e.bytes, e.data);
}
template <class A>
void serialize(A& a, serial::Of<A, RecordedFill>& e) {
  a(e.opening, e.queue, e.destination, e.bytes, e.pattern);
}
template <class A>
void serialize(A& a, serial::Of<A, RecordedLaunch>& e) {
  a(e.opening, e.queue, e.module, e.kernel, e.buffers, e.scalars, e.label);
}
template <class A>
void serialize(A& a, serial::Of<A, RecordedRecord>& e) {
  a(e.opening, e.queue, e.event);
}
template <class A>
void serialize(A& a, serial::Of<A, RecordedWait>& e) {
  a(e.opening, e.queue, e.event);
}
template <class A>
void serialize(A& a, serial::Of<A, Written>& e) {
  a(e.buffer, e.data);
}
template <class A>
void serialize(A& a, serial::Of<A, RecordedValues>& e) {
  a(e.work, e.written);
}
template <class A>
void serialize(A& a, serial::Of<A, RecordedFailure>& e) {
  a(e.work, e.call, e.code, e.message);
}

}  // namespace recorded
}  // namespace tenon::backend
