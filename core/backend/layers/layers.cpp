#include "core/backend/layers/layers.h"

#include <algorithm>
#include <cstdlib>

#include "core/backend/adapter/adapter.h"
#include "core/backend/layers/cache/cache.h"
#include "core/backend/layers/faults/faults.h"
#include "core/backend/layers/record/record.h"
#include "core/backend/layers/trace/trace.h"

namespace tenon::backend {
namespace {

// Without a cache everything works, only more slowly.
void warn_of_cache(const Status& status) {
  host_services()->log(
      fmt::format("the layer 'cache' keeps nothing: {}", status.message()).c_str());
}

}  // namespace

Result<std::shared_ptr<Backend>> with_layers(std::shared_ptr<Backend> inner,
                                             std::string_view names) {
  // The last name is the innermost layer.
  while (!names.empty()) {
    const size_t comma = names.rfind(',');
    const std::string_view name = comma == std::string_view::npos ? names : names.substr(comma + 1);
    names = comma == std::string_view::npos ? std::string_view() : names.substr(0, comma);
    if (name == "validate") {
      inner = make_validate_layer(std::move(inner));
    } else if (name == "faults") {
      const char* plan_text = std::getenv("TENON_FAULTS");
      TENON_ASSIGN(const FaultPlan plan, FaultPlan::parse(plan_text == nullptr ? "" : plan_text));
      inner = make_faults_layer(std::move(inner), plan).backend;
    } else if (name == "cache") {
      TENON_ASSIGN(const CacheConfig config, cache_config_from_environment());
      const CacheLayer layer = make_cache_layer(std::move(inner), config);
      if (!layer.status.ok()) warn_of_cache(layer.status);
      inner = layer.backend;
    } else if (name == "record") {
      TENON_ASSIGN(inner, make_record_layer(std::move(inner), RecordOptions::from_environment()));
    } else if (name == "trace") {
      TENON_ASSIGN(inner, make_trace_layer(std::move(inner), TraceOptions::from_environment()));
    } else if (!name.empty()) {
      return not_found(
          "there is no layer '{}'; there are validate, faults, cache, record and trace", name);
    }
  }
  return inner;
}

}  // namespace tenon::backend
