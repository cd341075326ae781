# How all of Troupe is compiled, and the few shapes a target comes in.
set(CMAKE_C_STANDARD 11)
set(CMAKE_C_EXTENSIONS ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE RelWithDebInfo)
endif()
set(CMAKE_C_FLAGS_RELWITHDEBINFO "-O2 -g")
set(CMAKE_C_FLAGS_RELEASE "-O2")
# cmake --compile-no-warning-as-error builds with a compiler that has new warnings.
if(NOT DEFINED CMAKE_COMPILE_WARNING_AS_ERROR)
  set(CMAKE_COMPILE_WARNING_AS_ERROR ON)
endif()
# Libraries that are not where the system looks are found by what is installed, too.
set(CMAKE_INSTALL_RPATH_USE_LINK_PATH ON)
set(TROUPE_SANITIZE "" CACHE STRING "Sanitizers for all targets: address,undefined or thread")
option(TROUPE_TEST_CLOCK "A clock that tests move in all programs; for no user's build" OFF)
option(TROUPE_FUZZ "Build the targets of tests/fuzz with libFuzzer (clang) and no other test" OFF)

add_library(troupe_flags INTERFACE)
target_compile_options(troupe_flags INTERFACE
  -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wpointer-arith
  -Wcast-qual -Wwrite-strings -Wvla -Wformat=2 -Wno-format-nonliteral)
# xxhash is compiled in: each library costs every executor 60 us.
target_compile_definitions(troupe_flags INTERFACE _GNU_SOURCE HASH_NONFATAL_OOM=1
  XXH_INLINE_ALL TROUPE_VERSION="${PROJECT_VERSION}")
target_include_directories(troupe_flags INTERFACE ${PROJECT_SOURCE_DIR}/lib)
target_include_directories(troupe_flags SYSTEM INTERFACE ${XXHASH_INCLUDE_DIRS})
target_link_options(troupe_flags INTERFACE -Wl,--build-id)
# Sanitizers have checks of their own in these places.
if(NOT TROUPE_SANITIZE AND NOT TROUPE_FUZZ)
  target_compile_options(troupe_flags INTERFACE -fstack-protector-strong)
  target_link_options(troupe_flags INTERFACE -Wl,-z,relro -Wl,-z,now)
  # glibc warns of it where nothing is optimized; who builds packages sets it.
  string(TOUPPER "CMAKE_C_FLAGS_${CMAKE_BUILD_TYPE}" troupe_type_flags)
  set(troupe_c_flags "${CMAKE_C_FLAGS} ${${troupe_type_flags}}")
  if(troupe_c_flags MATCHES "-O[1-9s]" AND NOT troupe_c_flags MATCHES "FORTIFY_SOURCE")
    target_compile_options(troupe_flags INTERFACE -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2)
  endif()
endif()
if(TROUPE_FUZZ)
  target_compile_options(troupe_flags INTERFACE -fsanitize=fuzzer-no-link)
endif()
if(TROUPE_SANITIZE)
  target_compile_options(troupe_flags INTERFACE
    -fsanitize=${TROUPE_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  target_link_options(troupe_flags INTERFACE -fsanitize=${TROUPE_SANITIZE})
endif()

# troupe_library(NAME [LINK targets…]): a static library of all .c files of this folder.
function(troupe_library name)
  cmake_parse_arguments(arg "" "" "LINK" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS *.c)
  add_library(${name} STATIC ${sources})
  target_link_libraries(${name} PUBLIC troupe_flags ${arg_LINK})
endfunction()

# troupe_install(NAME install(TARGETS)'s arguments…). It is linked with the RUNPATH of what
# is installed: where cmake may replace one later, it ends it with a ":", and such an
# empty element is the working folder.
function(troupe_install name)
  set_target_properties(${name} PROPERTIES BUILD_WITH_INSTALL_RPATH ON)
  install(TARGETS ${name} ${ARGN})
endfunction()

# troupe_module(NAME SOURCES files… LINK targets…): lib/troupe/NAME.so, which is loaded when
# it is used (lib/os/module.h). The target is troupe-NAME.
function(troupe_module name)
  cmake_parse_arguments(arg "" "" "SOURCES;LINK" ${ARGN})
  set(map ${PROJECT_SOURCE_DIR}/cmake/module.map)
  add_library(troupe-${name} MODULE ${arg_SOURCES})
  target_link_libraries(troupe-${name} PRIVATE ${arg_LINK})
  target_link_options(troupe-${name} PRIVATE -Wl,--version-script=${map})
  if(NOT TROUPE_SANITIZE AND NOT TROUPE_FUZZ)
    target_link_options(troupe-${name} PRIVATE -Wl,--no-undefined)
  endif()
  set_target_properties(troupe-${name} PROPERTIES PREFIX "" OUTPUT_NAME ${name}
    LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib/troupe LINK_DEPENDS ${map})
  troupe_install(troupe-${name} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/troupe)
endfunction()

# troupe_test(NAME LABEL SECONDS LINK targets…): tests/…/NAME.c, a GTest program whose TAP
# is read by prove.
function(troupe_test name)
  cmake_parse_arguments(arg "" "LABEL;SECONDS" "LINK" ${ARGN})
  add_executable(${name} ${name}.c)
  target_link_libraries(${name} PRIVATE ${arg_LINK} PkgConfig::GLIB)
  set_target_properties(${name} PROPERTIES
    RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  add_test(NAME ${name} COMMAND prove --exec "" $<TARGET_FILE:${name}> :: --tap)
  set_tests_properties(${name} PROPERTIES LABELS "${arg_LABEL}" TIMEOUT ${arg_SECONDS}
    ENVIRONMENT "TROUPE_BUILD=${CMAKE_BINARY_DIR};TROUPE_SOURCE=${PROJECT_SOURCE_DIR}")
endfunction()
