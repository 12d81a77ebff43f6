// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/io/file.hpp>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace superoffload::io {

std::string read_file(std::filesystem::path const& file, std::size_t limit) {
  int const fd = ::open(file.c_str(), O_RDONLY | O_CLOEXEC);
  expect(fd >= 0, exit_code::bad_input, file.string(), ": cannot be opened: ", std::strerror(errno));
  struct closer {
    int fd;
    ~closer() { ::close(fd); }
  } const close_at_end{fd};
  struct stat status {};
  expect(::fstat(fd, &status) == 0 && S_ISREG(status.st_mode), exit_code::bad_input, file.string(),
         ": expected a regular file");
  auto const bytes = static_cast<std::size_t>(status.st_size);
  expect(bytes <= limit, exit_code::bad_input, file.string(), ": ", bytes, " bytes, expected at most ", limit);
  std::string text(bytes, '\0');
  for (std::size_t done = 0; done < bytes;) {
    auto const got = ::pread(fd, text.data() + done, bytes - done, static_cast<off_t>(done));
    if (got < 0 && errno == EINTR) { continue; }
    expect(got > 0, exit_code::io_failure, file.string(), ": reading failed at byte ", done, ": ",
           got < 0 ? std::strerror(errno) : "the file became shorter");
    done += static_cast<std::size_t>(got);
  }
  return text;
}

}  // namespace superoffload::io
