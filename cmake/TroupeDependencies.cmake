# Every dependency is a Debian 12 package. A missing one is named with its package.
find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)

set(troupe_missing "")
macro(troupe_need name module package)
  pkg_check_modules(${name} IMPORTED_TARGET GLOBAL ${module})
  if(NOT ${name}_FOUND)
    list(APPEND troupe_missing ${package})
  endif()
endmacro()

troupe_need(HWLOC hwloc>=2.0 libhwloc-dev)
troupe_need(UV libuv>=1.42 libuv1-dev)
troupe_need(FYAML libfyaml>=0.7 libfyaml-dev)
troupe_need(JANSSON jansson>=2.13 libjansson-dev)
troupe_need(ZSTD libzstd libzstd-dev)
troupe_need(ZLIB zlib zlib1g-dev)
troupe_need(NETTLE nettle nettle-dev)
troupe_need(MUNGE munge libmunge-dev)
troupe_need(XXHASH libxxhash libxxhash-dev)
find_path(UTHASH_INCLUDE uthash.h)
if(NOT UTHASH_INCLUDE)
  list(APPEND troupe_missing uthash-dev)
endif()

# What is not built: told now, and by cmake --install.
function(troupe_left_out what)
  message(STATUS "Left out: ${what}")
  set_property(GLOBAL APPEND PROPERTY TROUPE_LEFT_OUT "${what}")
endfunction()

# There is a module for each MPI that is here (lib/mpi); runs of programs of none need
# none.
pkg_check_modules(OPENMPI IMPORTED_TARGET GLOBAL ompi-c)
pkg_check_modules(MPICH IMPORTED_TARGET GLOBAL mpich)
# What plain MPI programs of ours are built with.
if(OPENMPI_FOUND)
  set(troupe_an_mpi PkgConfig::OPENMPI)
elseif(MPICH_FOUND)
  set(troupe_an_mpi PkgConfig::MPICH)
else()
  troupe_left_out("static runs, since there is no MPI here (on Debian 12: apt-get install libopenmpi-dev)")
endif()

if(BUILD_TESTING OR NOT DEFINED BUILD_TESTING)
  if(NOT OPENMPI_FOUND)
    list(APPEND troupe_missing libopenmpi-dev)
  endif()
  find_program(MPIRUN_PROGRAM mpirun)
  if(NOT MPIRUN_PROGRAM)
    list(APPEND troupe_missing openmpi-bin)
  endif()
  troupe_need(GLIB glib-2.0>=2.74 libglib2.0-dev)
endif()

if(troupe_missing)
  list(JOIN troupe_missing " " troupe_missing)
  message(FATAL_ERROR
    "Troupe needs packages that are not installed. On Debian 12: apt-get install ${troupe_missing}")
endif()

# Slurm's, where they are: for troupe-slurm, and for what says which Slurm that is for.
find_path(SLURM_INCLUDE slurm/slurm.h)
