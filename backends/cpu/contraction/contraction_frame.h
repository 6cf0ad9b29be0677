// The frame of all functions of contractions: their arguments, the loop over workgroups, and the
// addresses and bounds of each workgroup.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "backends/cpu/codegen/elements.h"
#include "backends/cpu/contraction/tiling.h"

namespace tenon::cpu {

class ContractionFrame {
 public:
  virtual ~ContractionFrame() = default;
  /// Emits the function, called `name`.
  ContractionFunction run(const std::string& name);

 protected:
  ContractionFrame(llvm::Module& module, const ContractionLoops& loops, int64_t vector_bytes);

  /// Emits the products of the current workgroup.
  virtual void emit_workgroup() = 0;
  /// Emits what comes before the first workgroup of a call and behind the last one.
  virtual void emit_begin() {}
  virtual void emit_end() {}
  /// Bytes of scratch memory.
  virtual int64_t scratch_bytes() const = 0;

  int64_t columns_a_group() const { return t_.panels * t_.columns(); }
  /// The address of the byte of scratch memory.
  llvm::Value* scratch(int64_t byte);
  /// Bytes up to the next line of the cache.
  static int64_t aligned(int64_t bytes);

  llvm::Value* times(llvm::Value* x, int64_t by);
  llvm::Value* least(llvm::Value* x, llvm::Value* y);
  void each(llvm::Value* low, llvm::Value* high, int64_t step,
            const std::function<void(llvm::Value*)>& body);
  llvm::Value* result_at(llvm::Value* row, llvm::Value* column);

  llvm::Module& module_;
  llvm::LLVMContext& context_;
  const ContractionLoops& loops_;
  const ContractionLoop row_, column_, sum_;
  const Tiling t_;
  llvm::IRBuilder<> b_;
  const Elements lhs_elements_, rhs_elements_, result_elements_, sum_elements_;
  llvm::Function* function_ = nullptr;
  // Addresses and bounds of the current workgroup.
  llvm::Value* lhs_ = nullptr;
  llvm::Value* rhs_ = nullptr;
  llvm::Value* result_ = nullptr;
  llvm::Value* row_begin_ = nullptr;
  llvm::Value* row_end_ = nullptr;
  llvm::Value* column_begin_ = nullptr;
  llvm::Value* column_end_ = nullptr;

 private:
  void make_function(const std::string& name);
  void find_workgroup(llvm::Value* place, const std::vector<ContractionLoop>& outer);

  int64_t together_ = 1;  // Workgroups that are computed as one.
};

/// The function of a contraction whose products an instruction of MatrixUnit adds.
ContractionFunction emit_matrix_contraction(llvm::Module& module, const ContractionLoops& loops,
                                            const std::string& name, int64_t vector_bytes);

}  // namespace tenon::cpu
