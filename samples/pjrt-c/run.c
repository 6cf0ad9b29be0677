// Runs a StableHLO program through a PJRT plug-in: libtenon_pjrt.so, or that of anyone else.
//
//   run PLUGIN PROGRAM.mlir [NAME=TEXT …] [-- ARGUMENT …]
//
// NAME=TEXT is a create option of the client: device=cpu selects a device of Tenon. An argument is an array of f32, its
// dimensions and its elements: 2x3=1,2,3,4,5,6; one element stands for all, and 7 alone is a scalar. Prints the results.
//
// Every call fills in a struct, whose first member is its size, and gives it to a function of the table. A function
// returns null, or an error that the caller reads and destroys.
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "frameworks/pjrt/c_api/pjrt_c_api.h"

enum { kMostArguments = 64, kMostDimensions = 8, kMostOptions = 16 };

static const PJRT_Api* api;

static void fail(const char* what, const char* text) {
  fprintf(stderr, "run: %s: %s\n", what, text);
  exit(1);
}

// Ends the program with the error's message, if there is an error.
static void check(PJRT_Error* error, const char* what) {
  if (error == NULL) return;
  PJRT_Error_Message_Args args = {.struct_size = sizeof args, .error = error};
  api->PJRT_Error_Message(&args);
  fprintf(stderr, "run: %s: %.*s\n", what, (int)args.message_size, args.message);
  exit(1);
}

// Waits for an event, and destroys it.
static void await(PJRT_Event* event, const char* what) {
  PJRT_Event_Await_Args wait = {.struct_size = sizeof wait, .event = event};
  check(api->PJRT_Event_Await(&wait), what);
  PJRT_Event_Destroy_Args destroy = {.struct_size = sizeof destroy, .event = event};
  check(api->PJRT_Event_Destroy(&destroy), what);
}

static void load(const char* path) {
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) fail("the plug-in cannot be loaded", dlerror());
  const PJRT_Api* (*get)(void) = (const PJRT_Api* (*)(void))dlsym(library, "GetPjrtApi");
  if (get == NULL) fail(path, "it exports no GetPjrtApi");
  api = get();
  if (api->pjrt_api_version.major_version != PJRT_API_MAJOR) fail(path, "another version of the interface");
  PJRT_Plugin_Initialize_Args args = {.struct_size = sizeof args};
  check(api->PJRT_Plugin_Initialize(&args), "initialize");
}

static PJRT_Client* create_client(char* const* options, int count) {
  PJRT_NamedValue values[kMostOptions] = {0};
  for (int i = 0; i < count; ++i) {
    const char* text = strchr(options[i], '=') + 1;
    values[i] = (PJRT_NamedValue){.struct_size = sizeof *values, .name = options[i],
                                  .name_size = (size_t)(text - options[i] - 1), .type = PJRT_NamedValue_kString,
                                  .string_value = text, .value_size = strlen(text)};
  }
  PJRT_Client_Create_Args args = {.struct_size = sizeof args, .create_options = values, .num_options = (size_t)count};
  check(api->PJRT_Client_Create(&args), "create a client");
  return args.client;
}

static PJRT_Device* first_device(PJRT_Client* client) {
  PJRT_Client_PlatformName_Args name = {.struct_size = sizeof name, .client = client};
  check(api->PJRT_Client_PlatformName(&name), "platform");
  PJRT_Client_AddressableDevices_Args args = {.struct_size = sizeof args, .client = client};
  check(api->PJRT_Client_AddressableDevices(&args), "devices");
  if (args.num_addressable_devices == 0) fail("devices", "there are none");
  printf("platform %.*s, %zu devices\n", (int)name.platform_name_size, name.platform_name, args.num_addressable_devices);
  return args.addressable_devices[0];
}

static char* read_file(const char* path, size_t* size) {
  FILE* file = fopen(path, "rb");
  if (file == NULL) fail(path, "it cannot be read");
  char* text = NULL;
  for (size_t got = 1; got > 0; *size += got) {
    text = realloc(text, *size + 65536);
    if (text == NULL) fail(path, "no memory");
    got = fread(text + *size, 1, 65536, file);
  }
  fclose(file);
  return text;
}

static PJRT_LoadedExecutable* compile(PJRT_Client* client, const char* path) {
  // CompileOptionsProto: executable_build_options { num_replicas: 1 num_partitions: 1 }.
  static const char kOptions[] = {0x1a, 4, 0x20, 1, 0x28, 1};
  PJRT_Program program = {.struct_size = sizeof program, .format = "mlir", .format_size = 4};
  program.code = read_file(path, &program.code_size);
  PJRT_Client_Compile_Args args = {.struct_size = sizeof args, .client = client, .program = &program,
                                   .compile_options = kOptions, .compile_options_size = sizeof kOptions};
  check(api->PJRT_Client_Compile(&args), "compile");
  free(program.code);
  return args.executable;
}

// An array of f32 on the device, from "2x3=1,2,3,4,5,6".
static PJRT_Buffer* argument(PJRT_Client* client, PJRT_Device* device, const char* text) {
  int64_t dims[kMostDimensions];
  size_t rank = 0;
  size_t count = 1;
  char* at = (char*)text;
  if (strchr(text, '=') != NULL) {
    char* end = at;
    do {
      if (rank == kMostDimensions) fail(text, "too many dimensions");
      dims[rank] = strtoll(at, &end, 10);
      if (end == at || dims[rank] < 0 || (*end != 'x' && *end != '=')) fail(text, "not of the form 2x3=1,2");
      count *= (size_t)dims[rank++];
      at = end + 1;
    } while (*end == 'x');
  }
  float* values = calloc(count + 1, sizeof *values);
  if (values == NULL) fail(text, "no memory");
  size_t given = 0;
  for (char* end = at; *at != '\0' && given < count; at = *end == ',' ? end + 1 : end) {
    values[given++] = strtof(at, &end);
    if (end == at) fail(text, "not a number");
  }
  if (given == 0 || (given != 1 && given != count) || *at != '\0') fail(text, "not as many numbers as elements");
  for (size_t i = 1; given == 1 && i < count; ++i) values[i] = values[0];

  PJRT_Client_BufferFromHostBuffer_Args args = {
      .struct_size = sizeof args, .client = client, .data = values, .type = PJRT_Buffer_Type_F32, .dims = dims,
      .num_dims = rank, .host_buffer_semantics = PJRT_HostBufferSemantics_kImmutableUntilTransferCompletes,
      .device = device};
  check(api->PJRT_Client_BufferFromHostBuffer(&args), text);
  await(args.done_with_host_buffer, text);
  free(values);
  return args.buffer;
}

static void print_element(PJRT_Buffer_Type type, const void* values, size_t i) {
  switch (type) {
    case PJRT_Buffer_Type_F32: printf(" %g", ((const float*)values)[i]); break;
    case PJRT_Buffer_Type_F64: printf(" %g", ((const double*)values)[i]); break;
    case PJRT_Buffer_Type_S32: printf(" %d", ((const int32_t*)values)[i]); break;
    case PJRT_Buffer_Type_PRED: printf(" %s", ((const bool*)values)[i] ? "true" : "false"); break;
    default: printf(" ?"); break;
  }
}

static void print_buffer(PJRT_Buffer* buffer, size_t number) {
  PJRT_Buffer_ElementType_Args type = {.struct_size = sizeof type, .buffer = buffer};
  check(api->PJRT_Buffer_ElementType(&type), "element type");
  PJRT_Buffer_Dimensions_Args shape = {.struct_size = sizeof shape, .buffer = buffer};
  check(api->PJRT_Buffer_Dimensions(&shape), "dimensions");
  printf("%zu: [", number);
  size_t count = 1;
  for (size_t i = 0; i < shape.num_dims; ++i) {
    printf(i == 0 ? "%lld" : ",%lld", (long long)shape.dims[i]);
    count *= (size_t)shape.dims[i];
  }
  printf("]");
  // Without a destination, the call tells how many bytes it needs.
  PJRT_Buffer_ToHostBuffer_Args args = {.struct_size = sizeof args, .src = buffer};
  check(api->PJRT_Buffer_ToHostBuffer(&args), "size of a result");
  args.dst = malloc(args.dst_size + 1);
  if (args.dst == NULL) fail("a result", "no memory");
  check(api->PJRT_Buffer_ToHostBuffer(&args), "copy a result");
  await(args.event, "copy a result");
  for (size_t i = 0; i < count; ++i) print_element(type.type, args.dst, i);
  printf("\n");
  free(args.dst);
}

static size_t number_of_results(PJRT_LoadedExecutable* loaded) {
  PJRT_LoadedExecutable_GetExecutable_Args get = {.struct_size = sizeof get, .loaded_executable = loaded};
  check(api->PJRT_LoadedExecutable_GetExecutable(&get), "executable");
  PJRT_Executable_NumOutputs_Args count = {.struct_size = sizeof count, .executable = get.executable};
  check(api->PJRT_Executable_NumOutputs(&count), "number of results");
  PJRT_Executable_Destroy_Args destroy = {.struct_size = sizeof destroy, .executable = get.executable};
  check(api->PJRT_Executable_Destroy(&destroy), "executable");
  return count.num_outputs;
}

static void destroy_buffer(PJRT_Buffer* buffer) {
  PJRT_Buffer_Destroy_Args args = {.struct_size = sizeof args, .buffer = buffer};
  check(api->PJRT_Buffer_Destroy(&args), "destroy a buffer");
}

// Runs the program on one device, and prints its results.
static void execute(PJRT_LoadedExecutable* loaded, PJRT_Buffer** arguments, size_t count) {
  const size_t results = number_of_results(loaded);
  PJRT_Buffer** outputs = calloc(results + 1, sizeof *outputs);
  if (outputs == NULL) fail("execute", "no memory");
  PJRT_Event* done = NULL;
  PJRT_ExecuteOptions options = {.struct_size = sizeof options};
  PJRT_Buffer* const* const lists[] = {arguments};  // A list for each device.
  PJRT_Buffer** const output_lists[] = {outputs};
  PJRT_LoadedExecutable_Execute_Args args = {
      .struct_size = sizeof args, .executable = loaded, .options = &options, .argument_lists = lists, .num_devices = 1,
      .num_args = count, .output_lists = output_lists, .device_complete_events = &done};
  check(api->PJRT_LoadedExecutable_Execute(&args), "execute");
  await(done, "execute");
  for (size_t i = 0; i < results; ++i) {
    print_buffer(outputs[i], i);
    destroy_buffer(outputs[i]);
  }
  free(outputs);
}

int main(int argc, char** argv) {
  if (argc < 3) {
    fprintf(stderr, "usage: run PLUGIN PROGRAM.mlir [NAME=TEXT ...] [-- 2x3=1,2,3,4,5,6 ...]\n");
    return 2;
  }
  int options = 0;
  while (3 + options < argc && strcmp(argv[3 + options], "--") != 0) {
    if (options == kMostOptions || strchr(argv[3 + options], '=') == NULL) fail(argv[3 + options], "no option NAME=TEXT");
    ++options;
  }
  load(argv[1]);
  PJRT_Client* client = create_client(argv + 3, options);
  PJRT_Device* device = first_device(client);
  PJRT_LoadedExecutable* loaded = compile(client, argv[2]);
  PJRT_Buffer* arguments[kMostArguments];
  size_t count = 0;
  for (int i = 4 + options; i < argc; ++i) {
    if (count == kMostArguments) fail(argv[i], "too many arguments");
    arguments[count++] = argument(client, device, argv[i]);
  }
  execute(loaded, arguments, count);
  for (size_t i = 0; i < count; ++i) destroy_buffer(arguments[i]);
  PJRT_LoadedExecutable_Destroy_Args destroy = {.struct_size = sizeof destroy, .executable = loaded};
  check(api->PJRT_LoadedExecutable_Destroy(&destroy), "destroy the executable");
  PJRT_Client_Destroy_Args close = {.struct_size = sizeof close, .client = client};
  check(api->PJRT_Client_Destroy(&close), "destroy the client");
  return 0;
}
