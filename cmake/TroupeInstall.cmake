# What is installed beside programs and libraries.
install(FILES README.md LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY docs/ DESTINATION ${CMAKE_INSTALL_DOCDIR}/docs PATTERN man EXCLUDE)
install(DIRECTORY slurm-conf DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY examples DESTINATION ${CMAKE_INSTALL_DOCDIR}
  PATTERN CMakeLists.txt EXCLUDE)

# module use PREFIX/share/modulefiles; module load troupe
set(TROUPE_MODULEFILES ${CMAKE_INSTALL_DATADIR}/modulefiles)
file(RELATIVE_PATH TROUPE_MODULE_PREFIX "/${TROUPE_MODULEFILES}/troupe" "/")
configure_file(cmake/modulefile.in modulefile @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/modulefile DESTINATION ${TROUPE_MODULEFILES}/troupe
  RENAME ${PROJECT_VERSION})

get_property(troupe_left_out GLOBAL PROPERTY TROUPE_LEFT_OUT)
foreach(what IN LISTS troupe_left_out)
  install(CODE "message(STATUS \"Left out: ${what}\")")
endforeach()
