# Libraries that read other people's formats. Where one is missing, a stub in
# reformer/data/stub says so when it is wanted; everything else works.
#
# Defines REFORMER_FORMATS: the packages that were found.

set(REFORMER_FORMATS "")
foreach(_package ZLIB LibArchive JPEG PNG SentencePiece)
  find_package(${_package} QUIET)
  if(${_package}_FOUND)
    list(APPEND REFORMER_FORMATS ${_package})
  endif()
endforeach()
# Archives want both: libarchive does not check the sums of gzip, zlib does.
if(NOT ZLIB_FOUND)
  list(REMOVE_ITEM REFORMER_FORMATS LibArchive)
endif()
