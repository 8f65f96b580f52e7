# Several files of a folder are compiled as one: reading and instantiating
# LibTorch's, CLI11's and googletest's templates takes longer than our own code
# (docs/decisions/038-files-are-compiled-together.md).
#
#   REFORMER_UNITY   ON; OFF to compile every file by itself: faster after a
#                    change of one file, slower after all others

option(REFORMER_UNITY "Compile several files of a folder as one" ON)

# names_of(<list> <file>): what a file defines outside of functions, as
# clang-format leaves it: at the beginning of a line. "name=" and, where others
# may say the same again, the whole line.
function(names_of list file)
  file(STRINGS "${file}" lines REGEX "^[a-zA-Z].*[a-zA-Z0-9_]( =| {|{|;|\\[|\\(| :)")
  set(names "")
  foreach(line IN LISTS lines)
    string(MAKE_C_IDENTIFIER "${line}" same)
    if(line MATCHES "^(struct|class|enum class|enum) ([a-zA-Z0-9_]+)")
      list(APPEND names "${CMAKE_MATCH_2}=")
    elseif(line MATCHES "^(using|namespace) ([a-zA-Z0-9_]+) =")
      list(APPEND names "${CMAKE_MATCH_2}=${same}")
    elseif(NOT line MATCHES "^namespace" AND
        line MATCHES "^[^(={;]*[ *&]([a-zA-Z0-9_]+)( =|{|;|\\[|\\()")
      list(APPEND names "${CMAKE_MATCH_1}=")
    elseif(line MATCHES "^([a-z0-9_]+)\\(")
      list(APPEND names "${CMAKE_MATCH_1}=")
    endif()
  endforeach()
  list(REMOVE_DUPLICATES names)
  set(${list} "${names}" PARENT_SCOPE)
endfunction()

# join_files(<target> <most>): compiles up to `most` C++ files of a folder
# together, each where nobody else defines a name of its own. Those with
# options of their own stay by themselves.
function(join_files target most)
  if(NOT REFORMER_UNITY)
    return()
  endif()
  set_target_properties(${target} PROPERTIES
    UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  get_target_property(sources ${target} SOURCES)
  list(FILTER sources INCLUDE REGEX "\\.cpp$")
  list(FILTER sources EXCLUDE REGEX "^${CMAKE_CURRENT_BINARY_DIR}/")
  list(SORT sources)
  foreach(source IN LISTS sources)
    cmake_path(ABSOLUTE_PATH source OUTPUT_VARIABLE file)
    cmake_path(GET file PARENT_PATH folder)
    cmake_path(GET folder FILENAME folder)
    names_of(names "${file}")
    set(n 0)
    while(TRUE)
      set(group "${folder}_${n}")
      list(LENGTH ${group}_files size)
      set(fits TRUE)
      if(size GREATER_EQUAL most)
        set(fits FALSE)
      endif()
      foreach(entry IN LISTS names)
        string(REGEX MATCH "^([^=]*)=(.*)" _all "${entry}")
        if(DEFINED ${group}_name_${CMAKE_MATCH_1} AND NOT
            (CMAKE_MATCH_2 AND "${${group}_name_${CMAKE_MATCH_1}}" STREQUAL "${CMAKE_MATCH_2}"))
          set(fits FALSE)
        endif()
      endforeach()
      if(fits)
        break()
      endif()
      math(EXPR n "${n} + 1")
    endwhile()
    list(APPEND ${group}_files "${source}")
    foreach(entry IN LISTS names)
      string(REGEX MATCH "^([^=]*)=(.*)" _all "${entry}")
      set(${group}_name_${CMAKE_MATCH_1} "${CMAKE_MATCH_2}")
    endforeach()
    set_property(SOURCE "${source}" PROPERTY UNITY_GROUP "${group}")
  endforeach()
endfunction()
