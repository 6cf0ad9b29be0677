// `tenon new-backend`: writes a project with a working backend, to be changed by a vendor.
#include "tools/cli.h"
#include "tools/installation.h"
#include "tools/new_backend/new_backend.h"

namespace tenon::tools {
namespace {

struct NewBackendOptions {
  std::string name;
  std::string folder;
  std::string language = "c++";
};

// Quoted for the shell, if necessary.
std::string quoted(const std::string& word) {
  if (word.find_first_of(" \t\n'\"\\$`&|;<>()*?[]#~!{}") == std::string::npos) return word;
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? "'\\''" : std::string(1, c);
  return text + "'";
}

void print_next_steps(const NewBackendOptions& options, size_t files) {
  fmt::print("{}: {} files in {}; every op works already\n\n", options.name, files, options.folder);
  fmt::print("  cd {}\n", quoted(options.folder));
  const auto installed = installation();
  if (installed) {
    fmt::print("  PKG_CONFIG_PATH={} meson setup build\n", quoted(installed->pkg_config.string()));
  } else {
    fmt::print("  meson setup build        # needs an installed Tenon, found by pkg-config\n");
  }
  fmt::print(
      "  ninja -C build\n  meson test -C build\n  grep -rn PORT: .          # what to replace; "
      "README.md says in which order\n");
}

int new_backend(NewBackendOptions options) {
  if (options.folder.empty()) options.folder = "./" + options.name;
  const Status good = check_backend_name(options.name);
  if (!good.ok()) return report(Status(good).in_stage(kUsageStage));
  const auto language = options.language == "c" ? BackendLanguage::kC : BackendLanguage::kCpp;
  const std::vector<ProjectFile> files = backend_project(options.name, language);
  const Status written = write_project(files, options.folder);
  if (!written.ok()) return report(written);
  print_next_steps(options, files.size());
  return 0;
}

}  // namespace

void add_new_backend_command(CLI::App& app, int* exit_code) {
  auto options = std::make_shared<NewBackendOptions>();
  CLI::App* command =
      app.add_subcommand("new-backend", "Write a project with a working backend, for a new device");
  command
      ->add_option("NAME", options->name,
                   "The backend's name, for --device: lower-case letters, digits and '_'")
      ->required();
  command
      ->add_option("--dir", options->folder,
                   "The project's folder, which must be empty or not exist (default: ./NAME)")
      ->type_name("DIR");
  command
      ->add_option("--lang", options->language,
                   "c++ (backend.h, with Tenon's libraries) or c (only plugin.h); default: c++")
      ->type_name("LANGUAGE")
      ->check(CLI::IsMember({"c++", "c"}))
      ->capture_default_str();
  command->footer(
      "The project is complete: it drives the simulated chip that is installed with Tenon, builds\n"
      "against an installed Tenon and passes its tests. Replace the parts marked PORT: in it.");
  command->callback([options, exit_code] { *exit_code = new_backend(*options); });
}

}  // namespace tenon::tools
