# cmake -DOUT=FILE.c -DNAME=SYMBOL -DIN="a;b" -P TroupeEmbed.cmake
# A C array SYMBOL of the files' bytes, one behind the other, and SYMBOL_size.
set(bytes "")
foreach(file IN LISTS IN)
  file(READ ${file} hex HEX)
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," hex "${hex}")
  string(APPEND bytes "${hex}")
endforeach()
string(REGEX REPLACE "(0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,)"
  "\\1\n" bytes "${bytes}")
file(WRITE ${OUT} "#include <stddef.h>\n#include \"events/page/embedded.h\"\n"
  "const unsigned char ${NAME}[] = {\n${bytes}};\nconst size_t ${NAME}_size = sizeof ${NAME};\n")
