// frameworks/onnxruntime/: the execution provider for ONNX Runtime, over Tenon's devices.
// frameworks/onnxruntime/src/: its library, a client of the PJRT plug-in.
//
// This file: the tables of functions through which ONNX Runtime and an execution provider call each
// other, in the layout of version 23 of its C API (release 1.23). Later releases append to them.
#pragma once

#include <cstddef>
#include <cstdint>

struct OrtStatus;
struct OrtApi;
struct OrtEpApi;
struct OrtValueInfo;
struct OrtTypeInfo;
struct OrtTensorTypeAndShapeInfo;
struct OrtValue;
struct OrtKernelContext;
struct OrtHardwareDevice;
struct OrtKeyValuePairs;
struct OrtGraph;
struct OrtNode;
struct OrtOpAttr;
struct OrtSessionOptions;
struct OrtLogger;
struct OrtEpDevice;
struct OrtEpGraphSupportInfo;
struct OrtNodeComputeContext;
struct OrtMemoryInfo;
struct OrtMemoryDevice;
struct OrtSyncStream;
struct OrtSyncStreamImpl;
struct OrtRunOptions;
struct OrtKernelRegistry;

namespace tenon::ort {

/// The version that the provider asks for and states.
inline constexpr uint32_t kOrtApiVersion = 23;

enum OrtErrorCode : int {
  kOrtFail = 1,
  kOrtInvalidArgument = 2,
  kOrtNotImplemented = 9,
};
enum OrtLoggingLevel : int { kOrtVerbose = 0, kOrtInfo = 1, kOrtWarning = 2 };
enum OrtHardwareDeviceType : int { kOrtCpu = 0 };
enum OrtMemoryInfoDeviceType : int { kOrtCpuMemory = 0, kOrtGpuMemory = 1 };
enum OrtDeviceMemoryType : int { kOrtDefaultMemory = 0 };
enum OrtAllocatorType : int { kOrtDeviceAllocator = 0 };
/// Types of attributes.
enum OrtOpAttrType : int {
  kOrtInt = 1,
  kOrtInts = 2,
  kOrtFloat = 3,
  kOrtFloats = 4,
  kOrtString = 5,
  kOrtStrings = 6,
  kOrtGraph = 7,
  kOrtTensor = 8,
};

/// A function of a table, by its number.
template <class Table, size_t kSlot, class Function>
struct OrtSlot;
template <class Table, size_t kSlot, class Out, class... Args>
struct OrtSlot<Table, kSlot, Out(Args...)> {
  using TableType = Table;
  static Out call(const Table* table, Args... args) {
    void* const* const slots = reinterpret_cast<void* const*>(table);
    return reinterpret_cast<Out (*)(Args...)>(slots[kSlot])(args...);
  }
};
template <size_t kSlot, class Function>
using ApiSlot = OrtSlot<OrtApi, kSlot, Function>;
template <size_t kSlot, class Function>
using EpSlot = OrtSlot<OrtEpApi, kSlot, Function>;

// OrtApi: the return type, then the parameters.
using CreateStatus = ApiSlot<0, OrtStatus*(OrtErrorCode, const char*)>;
using GetErrorCode = ApiSlot<1, OrtErrorCode(const OrtStatus*)>;
using GetErrorMessage = ApiSlot<2, const char*(const OrtStatus*)>;
using GetTensorMutableData = ApiSlot<51, OrtStatus*(OrtValue*, void**)>;
using CastTypeInfoToTensorInfo =
    ApiSlot<55, OrtStatus*(const OrtTypeInfo*, const OrtTensorTypeAndShapeInfo**)>;
using GetTensorElementType = ApiSlot<60, OrtStatus*(const OrtTensorTypeAndShapeInfo*, int*)>;
using GetDimensionsCount = ApiSlot<61, OrtStatus*(const OrtTensorTypeAndShapeInfo*, size_t*)>;
using GetDimensions = ApiSlot<62, OrtStatus*(const OrtTensorTypeAndShapeInfo*, int64_t*, size_t)>;
using GetSymbolicDimensions =
    ApiSlot<63, OrtStatus*(const OrtTensorTypeAndShapeInfo*, const char**, size_t)>;
using GetTensorTypeAndShape = ApiSlot<65, OrtStatus*(const OrtValue*, OrtTensorTypeAndShapeInfo**)>;
using KernelContextGetInputCount = ApiSlot<88, OrtStatus*(const OrtKernelContext*, size_t*)>;
using KernelContextGetOutputCount = ApiSlot<89, OrtStatus*(const OrtKernelContext*, size_t*)>;
using KernelContextGetInput =
    ApiSlot<90, OrtStatus*(const OrtKernelContext*, size_t, const OrtValue**)>;
using KernelContextGetOutput =
    ApiSlot<91, OrtStatus*(OrtKernelContext*, size_t, const int64_t*, size_t, OrtValue**)>;
using ReleaseStatus = ApiSlot<93, void(OrtStatus*)>;
using ReleaseMemoryInfo = ApiSlot<94, void(OrtMemoryInfo*)>;
using ReleaseTensorTypeAndShapeInfo = ApiSlot<99, void(OrtTensorTypeAndShapeInfo*)>;
using ReleaseValue = ApiSlot<96, void(OrtValue*)>;
using LoggerLogMessage = ApiSlot<247, OrtStatus*(const OrtLogger*, OrtLoggingLevel, const char*,
                                                 const char*, int, const char*)>;
using LoggerGetLoggingSeverityLevel = ApiSlot<248, OrtStatus*(const OrtLogger*, OrtLoggingLevel*)>;
using ReadOpAttr =
    ApiSlot<272, OrtStatus*(const OrtOpAttr*, OrtOpAttrType, void*, size_t, size_t*)>;
using GetValueInfoName = ApiSlot<289, OrtStatus*(const OrtValueInfo*, const char**)>;
using GetValueInfoTypeInfo = ApiSlot<290, OrtStatus*(const OrtValueInfo*, const OrtTypeInfo**)>;
using GetKeyValuePairs =
    ApiSlot<298, void(const OrtKeyValuePairs*, const char* const**, const char* const**, size_t*)>;
using ReleaseKeyValuePairs = ApiSlot<300, void(OrtKeyValuePairs*)>;
using HardwareDeviceType = ApiSlot<307, OrtHardwareDeviceType(const OrtHardwareDevice*)>;
using GetEpApi = ApiSlot<317, const OrtEpApi*()>;
using CreateMemoryInfoV2 =
    ApiSlot<320, OrtStatus*(const char*, OrtMemoryInfoDeviceType, uint32_t, int32_t,
                            OrtDeviceMemoryType, size_t, OrtAllocatorType, OrtMemoryInfo**)>;
using ValueInfoGetInitializerValue =
    ApiSlot<326, OrtStatus*(const OrtValueInfo*, const OrtValue**)>;
using ValueInfoIsConstantInitializer = ApiSlot<331, OrtStatus*(const OrtValueInfo*, bool*)>;
using GraphGetName = ApiSlot<333, OrtStatus*(const OrtGraph*, const char**)>;
using GraphGetNumOperatorSets = ApiSlot<336, OrtStatus*(const OrtGraph*, size_t*)>;
using GraphGetOperatorSets =
    ApiSlot<337, OrtStatus*(const OrtGraph*, const char**, int64_t*, size_t)>;
using GraphGetNumInputs = ApiSlot<338, OrtStatus*(const OrtGraph*, size_t*)>;
using GraphGetInputs = ApiSlot<339, OrtStatus*(const OrtGraph*, const OrtValueInfo**, size_t)>;
using GraphGetNumOutputs = ApiSlot<340, OrtStatus*(const OrtGraph*, size_t*)>;
using GraphGetOutputs = ApiSlot<341, OrtStatus*(const OrtGraph*, const OrtValueInfo**, size_t)>;
using GraphGetNumInitializers = ApiSlot<342, OrtStatus*(const OrtGraph*, size_t*)>;
using GraphGetInitializers =
    ApiSlot<343, OrtStatus*(const OrtGraph*, const OrtValueInfo**, size_t)>;
using GraphGetNumNodes = ApiSlot<344, OrtStatus*(const OrtGraph*, size_t*)>;
using GraphGetNodes = ApiSlot<345, OrtStatus*(const OrtGraph*, const OrtNode**, size_t)>;
using GraphGetParentNode = ApiSlot<346, OrtStatus*(const OrtGraph*, const OrtNode**)>;
using NodeGetId = ApiSlot<348, OrtStatus*(const OrtNode*, size_t*)>;
using NodeGetName = ApiSlot<349, OrtStatus*(const OrtNode*, const char**)>;
using NodeGetOperatorType = ApiSlot<350, OrtStatus*(const OrtNode*, const char**)>;
using NodeGetDomain = ApiSlot<351, OrtStatus*(const OrtNode*, const char**)>;
using NodeGetSinceVersion = ApiSlot<352, OrtStatus*(const OrtNode*, int*)>;
using NodeGetNumInputs = ApiSlot<353, OrtStatus*(const OrtNode*, size_t*)>;
using NodeGetInputs = ApiSlot<354, OrtStatus*(const OrtNode*, const OrtValueInfo**, size_t)>;
using NodeGetNumOutputs = ApiSlot<355, OrtStatus*(const OrtNode*, size_t*)>;
using NodeGetOutputs = ApiSlot<356, OrtStatus*(const OrtNode*, const OrtValueInfo**, size_t)>;
using NodeGetNumImplicitInputs = ApiSlot<357, OrtStatus*(const OrtNode*, size_t*)>;
using NodeGetImplicitInputs =
    ApiSlot<358, OrtStatus*(const OrtNode*, const OrtValueInfo**, size_t)>;
using NodeGetNumAttributes = ApiSlot<359, OrtStatus*(const OrtNode*, size_t*)>;
using NodeGetAttributes = ApiSlot<360, OrtStatus*(const OrtNode*, const OrtOpAttr**, size_t)>;
using OpAttrGetTensorAttributeAsOrtValue = ApiSlot<362, OrtStatus*(const OrtOpAttr*, OrtValue**)>;
using OpAttrGetType = ApiSlot<363, OrtStatus*(const OrtOpAttr*, OrtOpAttrType*)>;
using OpAttrGetName = ApiSlot<364, OrtStatus*(const OrtOpAttr*, const char**)>;
using NodeGetNumSubgraphs = ApiSlot<365, OrtStatus*(const OrtNode*, size_t*)>;
using NodeGetSubgraphs =
    ApiSlot<366, OrtStatus*(const OrtNode*, const OrtGraph**, size_t, const char**)>;
using GetSessionOptionsConfigEntries =
    ApiSlot<379, OrtStatus*(const OrtSessionOptions*, OrtKeyValuePairs**)>;

struct OrtNodeFusionOptions {
  uint32_t ort_version_supported;
  bool drop_constant_initializers;
};

// OrtEpApi
using CreateEpDevice =
    EpSlot<0, OrtStatus*(void*, const OrtHardwareDevice*, const OrtKeyValuePairs*,
                         const OrtKeyValuePairs*, OrtEpDevice**)>;
using AddNodesToFuse = EpSlot<2, OrtStatus*(OrtEpGraphSupportInfo*, const OrtNode* const*, size_t,
                                            const OrtNodeFusionOptions*)>;
using NodeComputeContextNodeName = EpSlot<4, const char*(const OrtNodeComputeContext*)>;
using EpDeviceAddAllocatorInfo = EpSlot<5, OrtStatus*(OrtEpDevice*, const OrtMemoryInfo*)>;
using MemoryInfoGetMemoryDevice = EpSlot<6, const OrtMemoryDevice*(const OrtMemoryInfo*)>;
using MemoryDeviceAreEqual = EpSlot<8, bool(const OrtMemoryDevice*, const OrtMemoryDevice*)>;
using MemoryDeviceGetDeviceType = EpSlot<9, OrtMemoryInfoDeviceType(const OrtMemoryDevice*)>;

/// The way to the tables, which the library gets.
struct OrtApiBase {
  const OrtApi* (*GetApi)(uint32_t version);
  const char* (*GetVersionString)();
};

/// Memory of a device: addresses, which the host does not read.
struct OrtAllocator {
  uint32_t version = kOrtApiVersion;
  void* (*Alloc)(OrtAllocator*, size_t) = nullptr;
  void (*Free)(OrtAllocator*, void*) = nullptr;
  const OrtMemoryInfo* (*Info)(const OrtAllocator*) = nullptr;
  void* (*Reserve)(OrtAllocator*, size_t) = nullptr;
  // Absent functions: GetStats, AllocOnStream, and one of a later version.
  void* absent[3] = {};
};

/// Copies tensors between a device and the host.
struct OrtDataTransferImpl {
  uint32_t ort_version_supported = kOrtApiVersion;
  void (*Release)(OrtDataTransferImpl*) = nullptr;
  bool (*CanCopy)(const OrtDataTransferImpl*, const OrtMemoryDevice*,
                  const OrtMemoryDevice*) = nullptr;
  OrtStatus* (*CopyTensors)(OrtDataTransferImpl*, const OrtValue**, OrtValue**, OrtSyncStream**,
                            size_t) = nullptr;
};

/// Runs a fused group. Each of these structs begins an object of the provider.
struct OrtNodeComputeInfo {
  uint32_t ort_version_supported = kOrtApiVersion;
  OrtStatus* (*CreateState)(OrtNodeComputeInfo*, OrtNodeComputeContext*, void**) = nullptr;
  OrtStatus* (*Compute)(OrtNodeComputeInfo*, void*, OrtKernelContext*) = nullptr;
  void (*ReleaseState)(OrtNodeComputeInfo*, void*) = nullptr;
};

struct OrtEp {
  uint32_t ort_version_supported = kOrtApiVersion;
  const char* (*GetName)(const OrtEp*) = nullptr;
  OrtStatus* (*GetCapability)(OrtEp*, const OrtGraph*, OrtEpGraphSupportInfo*) = nullptr;
  OrtStatus* (*Compile)(OrtEp*, const OrtGraph**, const OrtNode**, size_t, OrtNodeComputeInfo**,
                        OrtNode**) = nullptr;
  void (*ReleaseNodeComputeInfos)(OrtEp*, OrtNodeComputeInfo**, size_t) = nullptr;
  // Absent functions: GetPreferredDataLayout … and those that later versions add.
  void* absent[21] = {};
};

struct OrtEpFactory {
  uint32_t ort_version_supported = kOrtApiVersion;
  const char* (*GetName)(const OrtEpFactory*) = nullptr;
  const char* (*GetVendor)(const OrtEpFactory*) = nullptr;
  OrtStatus* (*GetSupportedDevices)(OrtEpFactory*, const OrtHardwareDevice* const*, size_t,
                                    OrtEpDevice**, size_t, size_t*) = nullptr;
  OrtStatus* (*CreateEp)(OrtEpFactory*, const OrtHardwareDevice* const*,
                         const OrtKeyValuePairs* const*, size_t, const OrtSessionOptions*,
                         const OrtLogger*, OrtEp**) = nullptr;
  void (*ReleaseEp)(OrtEpFactory*, OrtEp*) = nullptr;
  uint32_t (*GetVendorId)(const OrtEpFactory*) = nullptr;
  const char* (*GetVersion)(const OrtEpFactory*) = nullptr;
  void* validate_compatibility = nullptr;
  OrtStatus* (*CreateAllocator)(OrtEpFactory*, const OrtMemoryInfo*, const OrtKeyValuePairs*,
                                OrtAllocator**) = nullptr;
  void (*ReleaseAllocator)(OrtEpFactory*, OrtAllocator*) = nullptr;
  OrtStatus* (*CreateDataTransfer)(OrtEpFactory*, OrtDataTransferImpl**) = nullptr;
  bool (*IsStreamAware)(const OrtEpFactory*) = nullptr;
  void* absent[8] = {};
};

// Published sizes, and slots of the functions: pointers of 8 bytes each, the version is slot 0.
static_assert(sizeof(void*) != 8 || sizeof(OrtEp) == 208);
static_assert(sizeof(void*) != 8 || sizeof(OrtEpFactory) == 168);
static_assert(offsetof(OrtEp, ReleaseNodeComputeInfos) == 4 * sizeof(void*));
static_assert(offsetof(OrtEpFactory, GetVersion) == 7 * sizeof(void*));
static_assert(offsetof(OrtEpFactory, CreateAllocator) == 9 * sizeof(void*));
static_assert(offsetof(OrtEpFactory, IsStreamAware) == 12 * sizeof(void*));
static_assert(offsetof(OrtNodeComputeInfo, ReleaseState) == 3 * sizeof(void*));
static_assert(offsetof(OrtAllocator, Reserve) == 4 * sizeof(void*));
static_assert(offsetof(OrtDataTransferImpl, CopyTensors) == 3 * sizeof(void*));

}  // namespace tenon::ort
