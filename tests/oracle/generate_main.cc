// merope_generate MODEL OUT [key=value ...]: one clip without queue and server, as raw RGB bytes, for tests that compare
// with another implementation. Keys: width height frames steps seed guidance prompt negative trajectory picture (a file of
// raw RGB frames) branch experts.
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <iterator>
#include <map>
#include <string>

#include "core/camera/trajectory_shapes.h"
#include "tests/worker/pipeline/recording_observer.h"
#include "worker/pipeline/engine_factory.h"

namespace merope::worker {
namespace {

int fail(const Error& error) {
  std::cerr << error.message << '\n';
  return 1;
}

int generate(const std::string& model, const std::string& out, std::map<std::string, std::string> keys) {
  const auto number = [&](const char* key, int otherwise) { return keys.contains(key) ? std::stoi(keys[key]) : otherwise; };
  EngineOptions options;
  options.model = model;
  options.threads = 1;
  options.experts = *parse_expert_residency(keys.contains("experts") ? keys["experts"] : "auto");
  const auto engine = open_engine(options);
  if (!engine) {
    return fail(engine.error());
  }
  const ModelDescription& description = (*engine)->description();
  GenerationSpec spec;
  spec.model = description.name;
  spec.encoding = description.encodings.front();
  spec.prompt = keys["prompt"];
  spec.negative_prompt = keys["negative"];
  spec.width = number("width", 64);
  spec.height = number("height", 64);
  spec.n_frames = number("frames", 9);
  spec.fps = description.default_fps;
  spec.seed = static_cast<std::uint64_t>(number("seed", 1));
  spec.steps = number("steps", 4);
  spec.guidance_scale = keys.contains("guidance") ? std::stod(keys["guidance"]) : 1.0;
  spec.shift = description.default_shift;
  spec.solver = description.default_solver;
  const camera::Lens lens{spec.width, spec.height, camera::pinhole_from_fov(spec.width, spec.height, 1.2)};
  const std::string shape = keys.contains("trajectory") ? keys["trajectory"] : "straight:6m";
  const auto trajectory = camera::trajectory_from_shape(shape, spec.n_frames, spec.fps, lens);
  if (!trajectory) {
    return fail(trajectory.error());
  }
  spec.trajectory = *trajectory;
  media::RgbFrames conditioning;
  if (keys.contains("picture")) {
    std::ifstream file(keys["picture"], std::ios::binary);
    conditioning.pixels.assign(std::istreambuf_iterator<char>(file), {});
    conditioning.width = spec.width;
    conditioning.height = spec.height;
    conditioning.n_frames = static_cast<int>(conditioning.pixels.size()) / (3 * spec.width * spec.height);
    spec.n_conditioning_frames = conditioning.n_frames;
  }
  test::RecordingObserver observer;
  const auto report = (*engine)->generate(spec, conditioning, observer);
  if (!report) {
    return fail(report.error());
  }
  std::ofstream(out, std::ios::binary)
      .write(reinterpret_cast<const char*>(observer.clip.pixels.data()),
             static_cast<std::streamsize>(observer.clip.pixels.size()));
  return 0;
}

}  // namespace
}  // namespace merope::worker

int main(int argc, char** argv) {
  if (argc < 3) {
    std::cerr << "usage: merope_generate MODEL OUT [key=value ...]\n";
    return 64;
  }
  std::map<std::string, std::string> keys;
  for (int i = 3; i < argc; ++i) {
    const std::string word = argv[i];
    keys[word.substr(0, word.find('='))] = word.substr(word.find('=') + 1);
  }
  return merope::worker::generate(argv[1], argv[2], keys);
}
