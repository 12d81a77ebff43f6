# SPDX-FileCopyrightText: 2026 The superoffload authors
# SPDX-License-Identifier: Apache-2.0

# Run by cpack before it packs: what Debian has elsewhere, or otherwise.

if(NOT CPACK_GENERATOR STREQUAL "DEB")
  return()
endif()
set(share ${CPACK_TEMPORARY_DIRECTORY}/usr/share)

file(GLOB pages ${share}/man/man1/*.1)
execute_process(COMMAND gzip -9n ${pages} COMMAND_ERROR_IS_FATAL ANY)
file(RENAME ${share}/zsh/site-functions ${share}/zsh/vendor-completions)
file(RENAME ${share}/doc/superoffload ${share}/doc/documentation)
file(MAKE_DIRECTORY ${share}/doc/${CPACK_PACKAGE_NAME})
file(RENAME ${share}/doc/documentation/LICENSE ${share}/doc/${CPACK_PACKAGE_NAME}/copyright)
file(REMOVE_RECURSE ${share}/doc/documentation)
