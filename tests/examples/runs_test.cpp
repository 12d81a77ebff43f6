// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0

// Runs do not eat each other, nor anything else: what a run finds in its output directory, and where it is
// told to write.
#include <superoffload/io/hub_export.hpp>
#include <superoffload/io/train_checkpoint.hpp>

#include "examples/rejection.hpp"

#include <chrono>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>

namespace {

using namespace superoffload;
using namespace superoffload::test;
namespace fs = std::filesystem;
using words = std::vector<std::string>;

struct place {
  scratch_directory root;
  fs::path output = root.path() / "output";
  fs::path metrics = root.path() / "metrics.jsonl";

  [[nodiscard]] words arguments(words const& more) const {
    return on_few_rows(output, joined({"--lr", "1e-3", "--log_interval", "1", "--max_steps", "4"}, more));
  }
  [[nodiscard]] outcome run(words const& more = {}) const {
    return run_on_one_thread(finetune_llama, arguments(more));
  }
  void succeed(words const& more = {}) const {
    auto const done = run(more);
    CAPTURE(done.err);
    REQUIRE(done.status == 0);
  }
  /// Is refused in one line, and changes nothing.
  void refused(words const& more, words const& says) const {
    CAPTURE(more.empty() ? "" : more.back());
    auto const before = snapshot_of(root.path());
    check_rejected(run(more), exit_code::bad_input, says);
    CHECK(snapshot_of(root.path()) == before);
  }
  [[nodiscard]] fs::path checkpoint(int step) const { return output / concat("checkpoint-", step); }
  [[nodiscard]] std::string id() const { return io::json::parse(contents_of(output / "run.json"))["run"]; }
};

words const choices{"--resume auto", "another --output_dir", "--overwrite_output_dir"};

TEST_CASE("a directory that holds an earlier run is refused, and the choices are named") {
  place const p;
  p.succeed({"--save_steps", "2", "--metrics", p.metrics});
  auto const id = p.id();
  CHECK(id.size() == 32);
  for (int const step : {2, 4}) { CHECK(io::checkpoint_reader::open(p.checkpoint(step)).run() == id); }
  CHECK(io::exported_run(p.output / "model") == id);

  p.refused({}, joined({p.output, "checkpoint-2, checkpoint-4, model of an earlier run"}, choices));
  p.refused({"--save_steps", "1", "--save_total_limit", "1"}, {"checkpoint-2"});
  auto const by_ranks = p.run({"--ranks", "2"});
  CHECK(by_ranks.status == 2);
  CHECK(by_ranks.err.find("holds checkpoint-2") != std::string::npos);
  // Nothing is refused that writes nothing there.
  CHECK(p.run({"--dry_run"}).status == 0);
  // Metrics by themselves are work, too.
  place const other;
  fs::copy(p.metrics, other.metrics);
  other.refused({"--metrics", other.metrics}, {other.metrics, "earlier run", "--overwrite_output_dir"});

  for (int const step : {2, 4}) { fs::remove_all(p.checkpoint(step)); }
  p.refused({}, joined({"holds model of an earlier run"}, choices));
}

TEST_CASE("--overwrite_output_dir removes an earlier run, and nothing else") {
  place const p;
  p.succeed({"--save_steps", "2", "--metrics", p.metrics});
  auto const id = p.id();
  write_file(p.output / "notes.txt", "mine");
  p.succeed({"--save_steps", "3", "--max_steps", "3", "--metrics", p.metrics, "--overwrite_output_dir"});
  CHECK(p.id() != id);
  CHECK_FALSE(fs::exists(p.checkpoint(2)));
  CHECK_FALSE(fs::exists(p.checkpoint(4)));
  CHECK(io::checkpoint_reader::open(p.checkpoint(3)).run() == p.id());
  CHECK(io::exported_run(p.output / "model") == p.id());
  CHECK(std::ranges::count(contents_of(p.metrics), '\n') == 3);
  CHECK(contents_of(p.output / "notes.txt") == "mine");

  p.refused({"--overwrite_output_dir", "--resume", "auto"}, {"--resume is auto", "--overwrite_output_dir"});
  write_file(p.checkpoint(3) / "mine.txt", "mine");
  check_failure(p.run({"--overwrite_output_dir"}), exit_code::bad_input, {"mine.txt", "not removed"});
  CHECK(fs::exists(p.checkpoint(3) / "manifest.json"));
  // One that cannot begin removes nothing.
  p.refused({"--overwrite_output_dir", "--dataset", "absent.json"}, {"absent.json"});
}

TEST_CASE("a run that is resumed is the same run, and only if it is the same") {
  place const p;
  p.succeed({"--save_steps", "2", "--metrics", p.metrics});
  auto const id = p.id();
  p.succeed({"--save_steps", "2", "--metrics", p.metrics, "--resume", "auto", "--max_steps", "6"});
  CHECK(p.id() == id);
  CHECK(io::checkpoint_reader::open(p.checkpoint(6)).run() == id);
  CHECK(io::exported_run(p.output / "model") == id);
  auto const lines = contents_of(p.metrics);
  CHECK(std::ranges::count(lines, '\n') == 6);
  std::size_t named = 0;
  for (auto at = lines.find(id); at != lines.npos; at = lines.find(id, at + 1)) { ++named; }
  CHECK(named == 6);

  struct change {
    words flags, says;
  };
  fs::path const model = p.root.path() / "model";
  auto const changed = [&](char const* name, char const* file, auto&& edit) {
    auto const to = p.root.path() / name;
    fs::copy(models / "llama", to);
    auto document = io::json::parse(contents_of(to / file));
    edit(document);
    write_file(to / file, document.dump());
    return to.string();
  };
  auto const rope = changed("rope", "config.json", [](auto& c) { c["rope_theta"] = 20000.0; });
  auto const epsilon = changed("epsilon", "config.json", [](auto& c) { c["rms_norm_eps"] = 0.001; });
  auto const tokens = changed("tokens", "tokenizer.json", [](auto& t) { t["version"] = "1.0"; });
  auto const cosmetic = changed("cosmetic", "config.json", [](auto& c) { c["torch_dtype"] = "float16"; });
  change const changes[] = {{{"--lr", "2e-3"}, {"--lr is '0.002' and was '0.001'"}},
                            {{"--batch_size", "3"}, {"--batch_size is '3' and was '2'"}},
                            {{"--lr_scheduler", "cosine"}, {"--lr_scheduler is 'cosine' and was 'constant'"}},
                            {{"--model", rope}, {"config.json's rope_theta is '20000.0' and was '"}},
                            {{"--model", epsilon}, {"config.json's rms_norm_eps is '0.001' and was '"}},
                            {{"--model", tokens}, {"tokenizer.json is 'SHA-256 "}},
                            {{"--eval_dataset", some_rows.string()}, {"--eval_dataset is '"}}};
  for (auto const& c : changes) {
    p.refused(joined({"--resume", "auto"}, c.flags), joined({p.checkpoint(6), "--resume"}, c.says));
  }
  for (std::size_t const i : {0U, 3U, 5U}) {
    CAPTURE(i);
    place const elsewhere;
    auto const done =
        elsewhere.run(joined({"--resume", p.checkpoint(6), "--max_steps", "7"}, changes[i].flags));
    CAPTURE(done.err);
    CHECK(done.status == 0);
    CHECK(done.err.find("note: goes on otherwise than it began: " + changes[i].says[0]) != std::string::npos);
    CHECK(elsewhere.id() == id);
  }
  p.succeed({"--resume", "auto", "--model", cosmetic, "--max_steps", "7", "--ranks", "2"});
}

TEST_CASE("what a user may not expect of a run is said") {
  place const p;
  auto const short_run = p.run({"--save_steps", "2", "--lr_warmup_steps", "4"});
  CHECK(short_run.status == 0);
  CHECK(short_run.err.find("note: --lr_warmup_steps is 4, but the run has 4 steps: the rate never reaches "
                           "--lr\n") != std::string::npos);
  auto const shorter = p.run({"--resume", "auto", "--lr_warmup_steps", "4", "--max_steps", "3"});
  CHECK(shorter.status == 0);
  CHECK(
      shorter.err.find("note: the run ends at step 3, and its checkpoint is at step 4: nothing is trained") !=
      std::string::npos);
}

TEST_CASE("output that is lost makes a run fail in the end, unless its reader has gone") {
  place const p;
  program full{finetune_llama, p.arguments({"--device", "cpu"}),
               [] { ::dup2(::open("/dev/full", O_WRONLY), 1); }};
  auto const done = full.wait();
  CHECK(done.status == static_cast<int>(exit_code::io_failure));
  CHECK(done.err.find("standard output: cannot be written") != std::string::npos);
  CHECK(fs::exists(p.output / "model" / "model.safetensors"));
  program unread{finetune_llama, p.arguments({"--device", "cpu", "--overwrite_output_dir"}), [] {
                   int ends[2];
                   if (::pipe(ends) == 0) {
                     ::dup2(ends[1], 1);
                     ::close(ends[0]);
                     ::close(ends[1]);
                   }
                 }};
  CHECK(unread.wait().status == 0);
}

TEST_CASE("a run that goes back leaves its later checkpoints to their directory, or has them removed") {
  place const p;
  p.succeed({"--save_steps", "1"});
  p.refused({"--resume", p.checkpoint(2)},
            {"checkpoint-3, checkpoint-4, which the run that goes on from " + p.checkpoint(2).string()});
  p.succeed({"--resume", p.checkpoint(2), "--overwrite_output_dir", "--lr", "3e-3", "--max_steps", "3",
             "--save_steps", "1"});
  CHECK_FALSE(fs::exists(p.checkpoint(4)));
  for (int const step : {1, 2, 3}) { CHECK(fs::exists(p.checkpoint(step))); }
  p.succeed({"--resume", "auto", "--lr", "3e-3"});
}

TEST_CASE("checkpoints of two runs in one directory: auto takes none for the other's") {
  place const p, other;
  p.succeed({"--save_steps", "2", "--max_steps", "2"});
  other.succeed({"--save_steps", "4"});
  fs::copy(other.checkpoint(4), p.checkpoint(4), fs::copy_options::recursive);
  p.refused({"--resume", "auto"}, {"holds checkpoint-4 of another run", "--resume DIR"});
  fs::remove(p.output / "run.json");
  p.refused({"--resume", "auto"}, {"holds checkpoint-2, model of another run"});
}

/// As versions saved it that knew of no runs.
void forget_run(fs::path const& checkpoint) {
  auto const reader = io::checkpoint_reader::open(checkpoint);
  auto state = io::json::parse(reader.state_json());
  state.erase("settings");
  std::vector<io::blob> blobs;
  for (auto const& name : reader.names()) {
    blobs.push_back({name, reader.blob_bytes(name),
                     [&reader, name](auto offset, auto to) { reader.read(name, offset, to); }});
  }
  io::save_checkpoint(checkpoint.parent_path(), reader.step(), state.dump(), blobs);
}

TEST_CASE("a checkpoint of a version that knew of no runs is resumed by its path") {
  place const p;
  p.succeed({"--save_steps", "2"});
  for (int const step : {2, 4}) { forget_run(p.checkpoint(step)); }
  fs::remove(p.output / "run.json");
  fs::remove_all(p.output / "model");
  p.refused({"--resume", "auto"},
            {p.checkpoint(2), "earlier version", "--resume " + p.checkpoint(2).string()});
  auto const done = p.run(
      {"--resume", p.checkpoint(4), "--max_steps", "6", "--save_steps", "2", "--save_total_limit", "1"});
  CAPTURE(done.err);
  CHECK(done.status == 0);
  CHECK(done.err.find("does not say with which settings") != std::string::npos);
  CHECK(fs::exists(p.checkpoint(4)));  // not known to be its own
  CHECK(io::checkpoint_reader::open(p.checkpoint(6)).run() == p.id());
}

TEST_CASE("the identity of a run that others wrote leads nowhere") {
  place const p;
  p.succeed({"--save_steps", "4"});
  auto const checkpoint = p.checkpoint(4);
  auto const reader = io::checkpoint_reader::open(checkpoint);
  std::vector<io::blob> blobs;
  for (auto const& name : reader.names()) {
    blobs.push_back({name, reader.blob_bytes(name),
                     [&reader, name](auto offset, auto to) { reader.read(name, offset, to); }});
  }
  for (std::string const run : {"../../../../x", "/../../x", "0123456789abcdef0123456789abcdeF"}) {
    CAPTURE(run);
    place const other;
    io::save_checkpoint(other.root.path() / "theirs", 4, reader.state_json(), blobs, 0, run);
    other.refused(
        {"--resume", other.root.path() / "theirs/checkpoint-4", "--report_to", "wandb", "--max_steps", "5"},
        {"theirs/checkpoint-4", "identity is '" + run, "32 hexadecimal digits"});
    auto record = io::json::parse(contents_of(p.output / "run.json"));
    record["run"] = run;
    fs::create_directory(other.output);
    write_file(other.output / "run.json", record.dump());
    other.refused({"--resume", "auto", "--report_to", "wandb"}, {"run.json", "identity is '" + run});
    fs::remove(other.output / "run.json");
    fs::copy(other.root.path() / "theirs/checkpoint-4", other.output / "checkpoint-4");
    other.refused({"--resume", "auto", "--report_to", "wandb", "--max_steps", "5"},
                  {"checkpoint-4", "identity is '" + run});
  }
}

TEST_CASE("a run that left no checkpoint begins again with auto if it is the same") {
  place const p;
  p.succeed({"--metrics", p.metrics});
  auto const id = p.id();
  auto const model = snapshot_of(p.output / "model");
  p.refused({"--resume", "auto", "--lr", "2e-3"}, {"holds model of another run", "--lr is '0.002'"});
  p.succeed({"--resume", "auto", "--metrics", p.metrics});
  CHECK(p.id() == id);
  CHECK(snapshot_of(p.output / "model") == model);
  CHECK(std::ranges::count(contents_of(p.metrics), '\n') == 4);
}

void wait_for_steps(program& p, fs::path const& metrics, std::ptrdiff_t steps) {
  while (p.running() && std::ranges::count(contents_of(metrics), '\n') < steps) {
    std::this_thread::sleep_for(std::chrono::milliseconds{2});
  }
  REQUIRE(p.running());
}

TEST_CASE("of two runs at once in one directory the second is refused, and the lock dies with its process") {
  for (std::string const ranks : {"1", "2"}) {
    CAPTURE(ranks);
    place const p;
    program first{finetune_llama,
                  p.arguments({"--max_steps", "100000", "--metrics", p.metrics, "--ranks", ranks})};
    wait_for_steps(first, p.metrics, 2);
    for (words const& more :
         {words{}, words{"--resume", "auto"}, words{"--overwrite_output_dir"}, words{"--ranks", "2"}}) {
      auto const second = p.run(more);
      CHECK(second.status == 2);
      CHECK(second.err.find("/output: another run is going on in this directory") != std::string::npos);
    }
    CHECK(first.running());
    first.send(ranks == "1" ? SIGKILL : SIGTERM);
    first.wait();
    if (ranks == "1") {
      p.succeed();
      CHECK_FALSE(fs::exists(p.output / "run.lock"));
    }
  }
}

TEST_CASE("an export that fails at the end saves a checkpoint instead, from which auto exports") {
  for (std::string const ranks : {"1", "2"}) {
    CAPTURE(ranks);
    place const p, whole;
    words const flags{"--max_steps", "40", "--ranks", ranks};
    whole.succeed(flags);
    program first{finetune_llama, p.arguments(joined(flags, {"--metrics", p.metrics}))};
    wait_for_steps(first, p.metrics, 1);
    write_file(p.output / "model", "a stray file");
    auto const done = first.wait();
    CAPTURE(done.err);
    CHECK(done.status == static_cast<int>(exit_code::bad_input));
    CHECK(done.err.find("error: " + (p.output / "model").string() + ": is a file") != std::string::npos);
    CHECK(done.err.find("nothing is lost: " + p.checkpoint(40).string()) != std::string::npos);
    CHECK(contents_of(p.output / "model") == "a stray file");
    fs::remove(p.output / "model");
    p.succeed(joined(flags, {"--resume", "auto", "--metrics", p.metrics}));
    CHECK(contents_of(p.output / "model/model.safetensors") ==
          contents_of(whole.output / "model/model.safetensors"));
  }
}

TEST_CASE("a model's directory that goes away in mid-run is missed by no export") {
  place const p;
  auto const model = p.root.path() / "gone";
  fs::copy(models / "llama", model);
  program run{finetune_llama, p.arguments({"--model", model, "--max_steps", "40", "--metrics", p.metrics})};
  wait_for_steps(run, p.metrics, 1);
  fs::remove_all(model);
  auto const done = run.wait();
  CAPTURE(done.err);
  CHECK(done.status == 0);
  CHECK(contents_of(p.output / "model/tokenizer.json") == contents_of(models / "llama" / "tokenizer.json"));
}

TEST_CASE("somebody's model is not replaced by an export") {
  place const p;
  fs::create_directories(p.output / "model");
  for (auto const* name : {"config.json", "model.safetensors", "tokenizer.json"}) {
    fs::copy_file(models / "llama" / name, p.output / "model" / name);
  }
  auto const before = snapshot_of(p.output);
  for (words const& more : {words{}, words{"--overwrite_output_dir"}, words{"--resume", "auto"}}) {
    p.refused(more, {(p.output / "model").string(), "superoffload_export.json"});
  }
  CHECK(snapshot_of(p.output) == before);
}

TEST_CASE("files that a run writes replace regular files only, and none that it reads") {
  place const p;
  auto const model = p.root.path() / "her_model";
  fs::copy(models / "llama", model);
  auto const rows = p.root.path() / "rows.json";
  fs::copy_file(some_rows, rows);
  auto const link = p.root.path() / "link";
  fs::create_symlink(rows, link);
  auto const hard_link = p.root.path() / "hard_link";
  fs::create_hard_link(model / "model.safetensors", hard_link);
  auto const pipe = p.root.path() / "pipe";
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  auto const deepspeed = write_file(p.root.path() / "ds.json", "{}");
  words const inputs{"--model",        model, "--dataset",          rows,
                     "--eval_dataset", rows,  "--deepspeed_config", deepspeed};
  check_rejected(run(finetune_llama, {"--model", model, "--dataset", rows, "--output_dir", model / "."}),
                 exit_code::bad_input, {"--output_dir: ", "is the directory of --model, too"});
  for (std::string const flag : {"--plan", "--timeline", "--trace", "--metrics"}) {
    CAPTURE(flag);
    for (fs::path const& file :
         {rows, link, hard_link, deepspeed, model / "model.safetensors", model / "config.json"}) {
      p.refused(joined(inputs, {flag, file}), {flag, file, "would replace what --"});
    }
    for (fs::path const& file : {fs::path{"/dev/null"}, pipe, p.root.path()}) {
      p.refused(joined(inputs, {flag, file}), {file, "expected the name of a regular file"});
    }
    for (auto const* name : {"run.json", "checkpoint-3", "model/plan.json"}) {
      p.refused(joined(inputs, {flag, p.output / name}), {flag, "expected another name"});
    }
    p.refused({"--dry_run", flag, link, "--hardware", write_file(p.root.path() / "hw.json", "{}")}, {"link"});
  }
  p.refused({"--plan", p.root.path() / "a", "--trace", p.root.path() / "x/../a"},
            {"--trace", "the file of --plan"});
  p.refused({"--metrics", rows}, {rows, "holds the metrics of an earlier run"});
  check_failure(p.run({"--metrics", rows, "--overwrite_output_dir"}), exit_code::bad_input,
                {rows, "is no file of metrics"});
  CHECK(contents_of(rows) == contents_of(some_rows));
  struct stat status{};
  CHECK((::stat("/dev/null", &status) == 0 && S_ISCHR(status.st_mode)));
}

}  // namespace
