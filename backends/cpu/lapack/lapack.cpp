#include "backends/cpu/lapack/lapack.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <complex>
#include <cstring>
#include <limits>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "core/base/process/environment.h"
#include "core/base/process/library.h"

namespace tenon::cpu {
namespace {

constexpr std::array kTypes = {ElementType::kF32, ElementType::kF64, ElementType::kC64,
                               ElementType::kC128};

// The functions of the library that is there, by kTypes; null where there is none.
class LapackLibrary final : public NamedLibrary {
 public:
  LapackLibrary() : NamedLibrary(kLapackVariable, {}) {
    // As LAPACK has them, with NumPy's prefix, and with integers of 64 bits.
    for (const auto& [prefix, suffix] : {std::pair("", "_"), std::pair("scipy_", "_"),
                                         std::pair("scipy_", "_64_"), std::pair("", "_64_")}) {
      const auto named = [&](const char* name) {
        return find((std::string(prefix) + name + suffix).c_str());
      };
      if (named("ssyevd") == nullptr) continue;
      eigenvalues = {named("ssyevd"), named("dsyevd"), named("cheevd"), named("zheevd")};
      singular_values = {named("sgesdd"), named("dgesdd"), named("cgesdd"), named("zgesdd")};
      has_wide_integers = std::string_view(suffix) == "_64_";
      return;
    }
  }
  Status status_of(int, std::string_view) const override { return {}; }

  std::array<void*, 4> eigenvalues = {};
  std::array<void*, 4> singular_values = {};
  bool has_wide_integers = false;

  static const LapackLibrary& instance() {
    static const LapackLibrary library;
    return library;
  }
};

template <class T>
struct RealOf {
  using Type = T;
};
template <class T>
struct RealOf<std::complex<T>> {
  using Type = T;
};
template <class T>
inline constexpr bool kIsComplex = !std::is_same_v<T, typename RealOf<T>::Type>;

template <class T>
T conjugate_of(T x) {
  if constexpr (kIsComplex<T>) {
    return std::conj(x);
  } else {
    return x;
  }
}

template <class T>
bool is_finite(const T* x, int64_t count) {
  using Real = typename RealOf<T>::Type;
  const auto* numbers = reinterpret_cast<const Real*>(x);
  const int64_t parts = count * (kIsComplex<T> ? 2 : 1);
  return std::all_of(numbers, numbers + parts, [](Real each) { return std::isfinite(each); });
}
template <class T>
void fill_with_nan(T* x, int64_t count) {
  std::fill(x, x + count, T(std::numeric_limits<typename RealOf<T>::Type>::quiet_NaN()));
}

// Memory that LAPACK works in; null where there is none.
template <class T>
class LapackWork {
 public:
  explicit LapackWork(int64_t count)
      : data_(new(std::nothrow) T[static_cast<size_t>(std::max<int64_t>(count, 1))]) {}
  T* get() const { return data_.get(); }
  explicit operator bool() const { return data_ != nullptr; }

 private:
  std::unique_ptr<T[]> data_;
};

template <class T>
int64_t size_of(T answer) {
  // A size beyond the digits of the type may have been rounded down.
  constexpr auto kMore = 1 + std::numeric_limits<typename RealOf<T>::Type>::epsilon();
  if constexpr (kIsComplex<T>) {
    return static_cast<int64_t>(answer.real() * kMore);
  } else {
    return static_cast<int64_t>(answer * kMore);
  }
}

// Eigenvalues of the Hermitian matrix of which `a` has one triangle by rows: LAPACK sees its
// conjugate's other triangle by columns. Returns whether there is a result.
template <class T, class Int>
bool eigenvalues(void* function, const LapackCall& call, const T* a, T* vectors,
                 typename RealOf<T>::Type* values) {
  using Real = typename RealOf<T>::Type;
  const int64_t size = call.rows;
  const LapackWork<T> matrix(size * size);
  if (!matrix) return false;
  std::copy(a, a + size * size, matrix.get());
  // The other triangle is not read, and may hold anything.
  for (int64_t i = 0; i < size; ++i) {
    for (int64_t j = 0; j < size; ++j) {
      if (call.reads_lower ? j > i : j < i) matrix.get()[i * size + j] = T(0);
    }
  }
  if (!is_finite(matrix.get(), size * size)) return false;
  const char job = 'V', triangle = call.reads_lower ? 'U' : 'L';
  const Int n = static_cast<Int>(size);
  Int info = 0;
  const auto run = [&](T* work, Int length, Real* reals, Int real_length, Int* integers,
                       Int integer_length) {
    if constexpr (kIsComplex<T>) {
      reinterpret_cast<void (*)(const char*, const char*, const Int*, T*, const Int*, Real*, T*,
                                const Int*, Real*, const Int*, Int*, const Int*, Int*, size_t,
                                size_t)>(function)(&job, &triangle, &n, matrix.get(), &n, values,
                                                   work, &length, reals, &real_length, integers,
                                                   &integer_length, &info, 1, 1);
    } else {
      reinterpret_cast<void (*)(const char*, const char*, const Int*, T*, const Int*, Real*, T*,
                                const Int*, Int*, const Int*, Int*, size_t, size_t)>(function)(
          &job, &triangle, &n, matrix.get(), &n, values, work, &length, integers, &integer_length,
          &info, 1, 1);
    }
  };
  T answer = T(0);
  Real real_answer = 0;
  Int integer_answer = 0;
  run(&answer, -1, &real_answer, -1, &integer_answer, -1);
  if (info != 0) return false;
  const int64_t length = size_of(answer), real_length = size_of(real_answer);
  const LapackWork<T> work(length);
  const LapackWork<Real> reals(real_length);
  const LapackWork<Int> integers(integer_answer);
  if (!work || !reals || !integers) return false;
  run(work.get(), static_cast<Int>(length), reals.get(), static_cast<Int>(real_length),
      integers.get(), integer_answer);
  if (info != 0) return false;
  for (int64_t i = 0; i < size; ++i) {
    for (int64_t j = 0; j < size; ++j) {
      vectors[i * size + j] = conjugate_of(matrix.get()[j * size + i]);
    }
  }
  return true;
}

// U S V^H of a matrix by rows: LAPACK sees its transpose, conj(V) S U^T, whose factors by columns
// are V^H and U by rows.
template <class T, class Int>
bool singular_values(void* function, const LapackCall& call, const T* a, T* u,
                     typename RealOf<T>::Type* values, T* vh) {
  using Real = typename RealOf<T>::Type;
  const int64_t elements = call.rows * call.columns;
  const int64_t least = std::min(call.rows, call.columns);
  const int64_t most = std::max(call.rows, call.columns);
  const LapackWork<T> matrix(elements);
  const LapackWork<Int> integers(8 * least);
  const LapackWork<Real> reals(
      kIsComplex<T> ? least * std::max(5 * least + 7, 2 * most + 2 * least + 1) : 1);
  if (!matrix || !integers || !reals || !is_finite(a, elements)) return false;
  std::copy(a, a + elements, matrix.get());
  const char job = call.full_matrices ? 'A' : 'S';
  const Int m = static_cast<Int>(call.columns), n = static_cast<Int>(call.rows);
  const Int width = call.full_matrices ? n : static_cast<Int>(least);
  Int info = 0;
  const auto run = [&](T* work, Int length) {
    if constexpr (kIsComplex<T>) {
      reinterpret_cast<void (*)(const char*, const Int*, const Int*, T*, const Int*, Real*, T*,
                                const Int*, T*, const Int*, T*, const Int*, Real*, Int*, Int*,
                                size_t)>(function)(&job, &m, &n, matrix.get(), &m, values, vh, &m,
                                                   u, &width, work, &length, reals.get(),
                                                   integers.get(), &info, 1);
    } else {
      reinterpret_cast<void (*)(const char*, const Int*, const Int*, T*, const Int*, Real*, T*,
                                const Int*, T*, const Int*, T*, const Int*, Int*, Int*, size_t)>(
          function)(&job, &m, &n, matrix.get(), &m, values, vh, &m, u, &width, work, &length,
                    integers.get(), &info, 1);
    }
  };
  T answer = T(0);
  run(&answer, -1);
  if (info != 0) return false;
  const int64_t length = size_of(answer);
  const LapackWork<T> work(length);
  if (!work) return false;
  run(work.get(), static_cast<Int>(length));
  return info == 0;
}

template <class T, class Int>
void run_matrices(const LapackLibrary& library, size_t type, const LapackCall& call,
                  std::byte* const* buffers, int64_t begin, int64_t end) {
  using Real = typename RealOf<T>::Type;
  const int64_t elements = call.rows * call.columns;
  const int64_t least = std::min(call.rows, call.columns);
  const auto* const a = reinterpret_cast<const T*>(buffers[0]);
  for (int64_t i = begin; i < end; ++i) {
    if (call.function == LapackFunction::kEigenvalues) {
      T* const vectors = reinterpret_cast<T*>(buffers[1]) + i * elements;
      Real* const values = reinterpret_cast<Real*>(buffers[2]) + i * least;
      if (eigenvalues<T, Int>(library.eigenvalues[type], call, a + i * elements, vectors, values)) {
        continue;
      }
      fill_with_nan(vectors, elements);
      fill_with_nan(values, least);
      continue;
    }
    const int64_t left = call.rows * (call.full_matrices ? call.rows : least);
    const int64_t right = call.columns * (call.full_matrices ? call.columns : least);
    T* const u = reinterpret_cast<T*>(buffers[1]) + i * left;
    Real* const values = reinterpret_cast<Real*>(buffers[2]) + i * least;
    T* const vh = reinterpret_cast<T*>(buffers[3]) + i * right;
    if (singular_values<T, Int>(library.singular_values[type], call, a + i * elements, u, values,
                                vh)) {
      continue;
    }
    fill_with_nan(u, left);
    fill_with_nan(values, least);
    fill_with_nan(vh, right);
  }
}

template <class Int>
void run_of_type(const LapackLibrary& library, const LapackCall& call, std::byte* const* buffers,
                 int64_t begin, int64_t end) {
  switch (call.type) {
    case ElementType::kF32:
      return run_matrices<float, Int>(library, 0, call, buffers, begin, end);
    case ElementType::kF64:
      return run_matrices<double, Int>(library, 1, call, buffers, begin, end);
    case ElementType::kC64:
      return run_matrices<std::complex<float>, Int>(library, 2, call, buffers, begin, end);
    default:
      return run_matrices<std::complex<double>, Int>(library, 3, call, buffers, begin, end);
  }
}

// Columns from which the library is faster than Tenon's own algorithms, which compute many
// matrices side by side (docs/cpu.md, "Eigenvalues and singular values").
constexpr int64_t kLeastColumns = 16;
constexpr int64_t kLeastColumnsOfMany = 12;
constexpr int64_t kMany = 16;

// Whether the results of the call for `a` are those of the site.
bool has_results(const LapackCall& call, const Shape& a, std::span<const Shape> results) {
  const Dims batch(a.dims().begin(), a.dims().end() - 2);
  const ElementType real = is_complex(call.type) ? complex_part(call.type) : call.type;
  const int64_t least = std::min(call.rows, call.columns);
  const auto is_array = [&](size_t i, ElementType type, const Dims& own) {
    Dims dims = batch;
    dims.insert(dims.end(), own.begin(), own.end());
    return results[i] == Shape(type, dims);
  };
  if (call.function == LapackFunction::kEigenvalues) {
    return is_array(0, call.type, {call.rows, call.rows}) && is_array(1, real, {call.rows});
  }
  const int64_t left = call.full_matrices ? call.rows : least;
  const int64_t right = call.full_matrices ? call.columns : least;
  return is_array(0, call.type, {call.rows, left}) && is_array(1, real, {least}) &&
         is_array(2, call.type, {right, call.columns});
}

bool is_square(const Shape& shape) {
  const Dims& dims = shape.dims();
  return dims.size() >= 2 && dims.back() == dims[dims.size() - 2];
}

}  // namespace

bool names_lapack() {
  const std::string name = environment_or(kLapackVariable, "none");
  return name != "none";
}

Status lapack_state() {
  const LapackLibrary& library = LapackLibrary::instance();
  const auto is_missing = [](void* function) { return function == nullptr; };
  if (std::ranges::none_of(library.eigenvalues, is_missing) &&
      std::ranges::none_of(library.singular_values, is_missing)) {
    return {};
  }
  return {ErrorCode::kUnavailable,
          fmt::format("cpu: LAPACK's functions are missing: {} is {}", kLapackVariable,
                      environment_or(kLapackVariable, "not set"))};
}

std::optional<LapackCall> lapack_call_of(const program::LibraryCall& call,
                                         std::span<const Shape> operands,
                                         std::span<const Shape> results) {
  const auto* const named = std::get_if<program::Composite>(&call);
  if (named == nullptr || !names_lapack() || operands.size() != 1 || operands[0].dims().size() < 2)
    return {};
  LapackCall made;
  if (named->name == "Eigh") {
    if (results.size() != 2 || !is_square(operands[0])) return {};
  } else if (named->name == "tenon.svd") {
    if (results.size() != 3) return {};
    made.function = LapackFunction::kSingularValues;
    made.full_matrices = is_square(results[0]) && is_square(results[2]);
  } else {
    return {};
  }
  const Shape& a = operands[0];
  made.type = a.element_type();
  if (std::ranges::find(kTypes, made.type) == kTypes.end()) return {};
  made.rows = a.dims()[a.dims().size() - 2];
  made.columns = a.dims().back();
  const int64_t least = std::min(made.rows, made.columns);
  if (least == 0 || a.element_count() == 0) return {};
  made.batch = a.element_count() / (made.rows * made.columns);
  if (least < (made.batch >= kMany ? kLeastColumnsOfMany : kLeastColumns)) return {};
  for (const program::CompositeAttribute& each : named->attributes) {
    const auto* const text = std::get_if<std::string>(&each.value);
    if (each.name == "backend_config" && text != nullptr) {
      made.reads_lower = !text->starts_with("0");
    }
  }
  if (!has_results(made, a, results)) return {};
  const auto bytes_of = [](const Shape& shape) {
    return shape.element_count() * static_cast<int64_t>(storage_bytes(shape.element_type()));
  };
  made.buffers.push_back(bytes_of(a));
  for (const Shape& each : results) made.buffers.push_back(bytes_of(each));
  return made;
}

void run_lapack(const int64_t* numbers, std::byte* const* buffers, int64_t begin, int64_t end) {
  LapackCall call;
  call.function = static_cast<LapackFunction>(numbers[0]);
  call.type = static_cast<ElementType>(numbers[1]);
  call.batch = numbers[2];
  call.rows = numbers[3];
  call.columns = numbers[4];
  call.reads_lower = numbers[5] != 0;
  call.full_matrices = numbers[6] != 0;
  const LapackLibrary& library = LapackLibrary::instance();
  if (library.has_wide_integers) {
    run_of_type<int64_t>(library, call, buffers, begin, end);
  } else {
    run_of_type<int32_t>(library, call, buffers, begin, end);
  }
}

}  // namespace tenon::cpu
