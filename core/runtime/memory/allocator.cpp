#include "core/runtime/memory/allocator.h"

#include <algorithm>

namespace tenon::runtime {
namespace {

// Blocks are as large as all before them together, within these bounds.
constexpr int64_t kSmallestBlock = int64_t{1} << 20;
constexpr int64_t kLargestBlock = int64_t{32} << 20;
// Free blocks below this size in all are always kept.
constexpr int64_t kLittle = 2 * kLargestBlock;

int64_t rounded(int64_t bytes, int64_t unit) { return (bytes + unit - 1) / unit * unit; }

}  // namespace

Suballocation::~Suballocation() {
  if (owner_ != nullptr) owner_->give_back(*this);
}

Allocator::Allocator(AllocatorDevice device, uint32_t space, const backend::SpaceInfo& info)
    : device_(std::move(device)), space_(space), info_(info) {}

Result<std::shared_ptr<Suballocation>> Allocator::allocate(int64_t bytes, const MemoryLabel& label,
                                                           QueueRole user) {
  if (bytes > INT64_MAX - info_.alignment) {
    return tl::make_unexpected(
        exhausted(bytes, label, Status(resource_exhausted("no device has so many"))));
  }
  // An array without elements has a place too.
  const int64_t taken = rounded(std::max<int64_t>(bytes, 1), info_.alignment);
  auto suballocation = take(taken, label, user);
  if (suballocation == nullptr) {
    // Sizes that grow leave blocks behind that nothing fits in any more.
    if (has_excess()) TENON_TRY(trim());
    Status status = add_block(taken);
    if (status.code() == ErrorCode::kResourceExhausted) {
      TENON_TRY(trim());
      suballocation = take(taken, label, user);
      status = suballocation != nullptr ? Status() : add_block(taken);
    }
    if (status.code() == ErrorCode::kResourceExhausted) {
      return tl::make_unexpected(exhausted(bytes, label, status));
    }
    TENON_TRY(std::move(status));
    if (suballocation == nullptr) suballocation = take(taken, label, user);
    // Another thread may have taken what was added.
    if (suballocation == nullptr) return allocate(bytes, label, user);
  }
  suballocation->bytes_ = bytes;
  return suballocation;
}

bool Allocator::has_excess() const {
  const std::lock_guard lock(mutex_);
  int64_t free = 0;
  for (const auto& [memory, block] : blocks_) free += block.is_free() ? block.bytes : 0;
  return free > std::max(statistics_.bytes_in_use, kLittle);
}

// The smallest piece that is large enough; for an upload the smallest whose last use is done, as
// far as one is soon found.
FreePieces::const_iterator Allocator::find_piece(int64_t bytes, QueueRole user) const {
  constexpr int kMostLooks = 64;
  const auto smallest = by_size_.lower_bound({bytes, 0, 0});
  if (user == QueueRole::kCompute || device_.computed == nullptr) return smallest;
  int looks = 0;
  for (auto piece = smallest; piece != by_size_.end() && looks < kMostLooks; ++piece, ++looks) {
    const MemoryBlock& block = blocks_.find(piece->memory)->second;
    const int64_t free_after = block.free.find(piece->offset)->second.free_after;
    if (free_after <= device_.computed->done) return piece;
  }
  return smallest;
}

Allocator::PieceNodes Allocator::nodes() {
  if (spares_ > 0) return std::move(spare_[--spares_]);
  PiecesByOffset one = {{0, {}}};
  FreePieces one_by_size = {{}};
  return {one.extract(one.begin()), one_by_size.extract(one_by_size.begin())};
}

void Allocator::keep(PieceNodes nodes) {
  if (spares_ < spare_.size()) spare_[spares_++] = std::move(nodes);
}

// Memory of the host that this takes is had before anything changes, so that nothing fails behind
// it and a return needs none.
std::shared_ptr<Suballocation> Allocator::take(int64_t bytes, const MemoryLabel& label,
                                               QueueRole user) {
  struct MadeSuballocation : Suballocation {};
  std::shared_ptr<Suballocation> suballocation = std::make_shared<MadeSuballocation>();
  suballocation->label_ = label;
  const std::lock_guard lock(mutex_);
  auto found = find_piece(bytes, user);
  if (found == by_size_.end()) {
    join_all();
    found = find_piece(bytes, user);
  }
  if (found == by_size_.end()) return nullptr;
  const auto [size, memory, offset] = *found;
  PieceNodes rest = size > bytes ? nodes() : PieceNodes();
  MemoryBlock& block = blocks_.find(memory)->second;
  suballocation->memory_ = memory;
  suballocation->offset_ = offset;
  if (block.host != nullptr) suballocation->host_ = block.host + offset;
  suballocation->is_writable_ = info_.host_writable;
  suballocation->taken_ = bytes;
  suballocation->by_size_ = by_size_.extract(found);
  suballocation->piece_ = block.free.extract(offset);
  suballocation->free_after_ = suballocation->piece_.mapped().free_after;
  if (size > bytes) {
    rest.piece.key() = offset + bytes;
    rest.piece.mapped() = {size - bytes, suballocation->free_after_};
    block.free.insert(std::move(rest.piece));
    rest.by_size.value() = {size - bytes, memory, offset + bytes};
    by_size_.insert(std::move(rest.by_size));
  }
  suballocation->next_ = live_;
  if (live_ != nullptr) live_->before_ = suballocation.get();
  live_ = suballocation.get();
  statistics_.bytes_in_use += bytes;
  statistics_.peak_bytes_in_use = std::max(statistics_.peak_bytes_in_use, statistics_.bytes_in_use);
  statistics_.largest_allocation = std::max(statistics_.largest_allocation, bytes);
  ++statistics_.allocations;
  suballocation->owner_ = shared_from_this();
  return suballocation;
}

void Allocator::give_back(Suballocation& suballocation) {
  const std::lock_guard lock(mutex_);
  (suballocation.before_ != nullptr ? suballocation.before_->next_ : live_) = suballocation.next_;
  if (suballocation.next_ != nullptr) suballocation.next_->before_ = suballocation.before_;
  statistics_.bytes_in_use -= suballocation.taken_;
  const auto found = blocks_.find(suballocation.memory_);
  if (found == blocks_.end()) return;
  PiecesByOffset& free = found->second.free;
  suballocation.piece_.key() = suballocation.offset_;
  // Work that uses it keeps it until its calls begin.
  const int64_t free_after = device_.computed != nullptr ? device_.computed->begun.load() : 0;
  suballocation.piece_.mapped() = {suballocation.taken_, free_after};
  auto at = free.insert(std::move(suballocation.piece_)).position;
  // Joins two neighbours, one of which is `at`, if nothing lies between them; gives the piece that
  // `at` is part of then.
  const auto join = [&](PiecesByOffset::iterator first, PiecesByOffset::iterator second) {
    if (!may_join(*first, *second)) return first == at ? first : second;
    const auto other = first == at ? second : first;
    PieceNodes joined;
    joined.by_size = by_size_.extract({other->second.bytes, suballocation.memory_, other->first});
    first->second.bytes += second->second.bytes;
    first->second.free_after = std::max(first->second.free_after, second->second.free_after);
    joined.piece = free.extract(second);
    keep(std::move(joined));
    return first;
  };
  if (const auto next = std::next(at); next != free.end()) at = join(at, next);
  if (at != free.begin()) at = join(std::prev(at), at);
  suballocation.by_size_.value() = {at->second.bytes, suballocation.memory_, at->first};
  by_size_.insert(std::move(suballocation.by_size_));
}

// Pieces whose last uses differ stay apart until those are done, so that an upload finds the one
// that it need not wait for.
bool Allocator::may_join(const Piece& first, const Piece& second) const {
  const int64_t a = first.second.free_after;
  const int64_t b = second.second.free_after;
  return first.first + first.second.bytes == second.first &&
         (a == b || std::max(a, b) <= device_.computed->done);
}

void Allocator::join_all() {
  for (auto& [memory, block] : blocks_) {
    for (auto first = block.free.begin(); first != block.free.end();) {
      const auto second = std::next(first);
      if (second == block.free.end()) break;
      if (first->first + first->second.bytes != second->first) {
        first = second;
        continue;
      }
      auto by_size = by_size_.extract({first->second.bytes, memory, first->first});
      by_size_.erase({second->second.bytes, memory, second->first});
      first->second.bytes += second->second.bytes;
      first->second.free_after = std::max(first->second.free_after, second->second.free_after);
      block.free.erase(second);
      by_size.value().bytes = first->second.bytes;
      by_size_.insert(std::move(by_size));
    }
  }
}

// Small requests share a block; a block of a small space is a part of it.
Status Allocator::add_block(int64_t bytes) {
  int64_t size = std::clamp(statistics().bytes_reserved, kSmallestBlock, kLargestBlock);
  if (info_.bytes != 0) size = std::min(size, info_.bytes / 8);
  size = std::max(bytes, rounded(size, info_.alignment));
  TENON_ASSIGN(const auto device, device_.use());
  Result<backend::MemoryHandle> memory = 0;
  std::byte* host = nullptr;
  {
    const std::lock_guard lock(*device_.one_at_a_time);
    memory = device->allocate(space_, size);
    if (!memory && memory.error().code() == ErrorCode::kResourceExhausted && size > bytes) {
      size = bytes;
      memory = device->allocate(space_, size);
    }
    if (memory && info_.host_visible) host = device->map(*memory).value_or(nullptr);
  }
  if (!memory) return device_.note_loss(memory.error());
  const std::lock_guard lock(mutex_);
  MemoryBlock& block = blocks_[*memory];
  block.bytes = size;
  block.host = host;
  block.free.emplace(0, PieceInfo{size, 0});
  by_size_.insert({size, *memory, 0});
  statistics_.bytes_reserved += size;
  return {};
}

Allocator::FreeBlocks Allocator::take_free_blocks() {
  FreeBlocks free;
  const std::lock_guard lock(mutex_);
  join_all();
  for (auto it = blocks_.begin(); it != blocks_.end();) {
    if (!it->second.is_free()) {
      ++it;
      continue;
    }
    statistics_.bytes_reserved -= it->second.bytes;
    free.pieces.insert(by_size_.extract({it->second.bytes, it->first, 0}));
    free.blocks.insert(blocks_.extract(it++));
  }
  return free;
}

// Work that is on its way holds suballocations that nobody else needs any more, so it is waited for
// first. Between that and the taking of a block another thread may have used it and given it back,
// with work still on its way: once it is taken, the device is waited for again (B18).
Status Allocator::trim() {
  // Threads that come meanwhile find the memory that the first has freed.
  const std::lock_guard trimming(trimming_);
  TENON_TRY(device_.drain());
  auto free = take_free_blocks();
  if (free.blocks.empty()) return {};
  Status idle = device_.drain();
  const auto device = device_.use();
  if (!idle.ok() || !device) {  // The close of a lost device frees them.
    const std::lock_guard lock(mutex_);
    for (const auto& [memory, block] : free.blocks) statistics_.bytes_reserved += block.bytes;
    blocks_.merge(free.blocks);
    by_size_.merge(free.pieces);
    return idle.ok() ? device.error() : idle;
  }
  const std::lock_guard lock(*device_.one_at_a_time);
  for (const auto& [memory, block] : free.blocks) (*device)->free(memory);
  return {};
}

void Allocator::abandon() {
  const std::lock_guard lock(mutex_);
  blocks_.clear();
  by_size_.clear();
  statistics_.bytes_reserved = 0;
}

MemoryStatistics Allocator::statistics() const {
  const std::lock_guard lock(mutex_);
  return statistics_;
}

void Allocator::clear_statistics() {
  const std::lock_guard lock(mutex_);
  statistics_.peak_bytes_in_use = statistics_.bytes_in_use;
  statistics_.largest_allocation = 0;
  statistics_.allocations = 0;
}

Status Allocator::exhausted(int64_t bytes, const MemoryLabel& label, const Status& why) const {
  constexpr size_t kListed = 5;
  const std::lock_guard lock(mutex_);
  std::vector<const Suballocation*> live;
  for (const Suballocation* each = live_; each != nullptr; each = each->next_) live.push_back(each);
  std::ranges::sort(live, [](const Suballocation* a, const Suballocation* b) {
    return std::pair(a->taken_, a->label()) > std::pair(b->taken_, b->label());
  });
  std::string text = fmt::format("there is no room for {} bytes of {}: {}; {} bytes are in use",
                                 bytes, label.text(), why.message(), statistics_.bytes_in_use);
  for (size_t i = 0; i < std::min(live.size(), kListed); ++i) {
    text += fmt::format("{}{} bytes of {}", i == 0 ? ", the largest: " : ", ", live[i]->taken_,
                        live[i]->label());
  }
  return Status(ErrorCode::kResourceExhausted, std::move(text));
}

}  // namespace tenon::runtime
