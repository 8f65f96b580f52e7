# Does LSH attention's time grow with length as it should, and from which
# length on is it faster than exact attention?
#
#   gnuplot -c bench/attention.gnuplot SUBJECT MACHINE [exact] >attention.png
#
# in the folder of attention.series, which attention_series.py makes. Texts come
# as arguments: unlike what -e takes they are never read as commands.

set encoding utf8
set terminal pngcairo size 1100,750 font "Sans,13" linewidth 1.5
series = 'attention.series'

set title "Time of attention against length" font ",17" offset 0,1.3
set label 1 ARG1.'; '.ARG2 noenhanced center at graph 0.5,1.035 font ",12"
set tmargin 5
set xlabel "length (positions)"
set ylabel "time of a forward and backward pass"

set logscale x 2
set logscale y 10
set xtics ("256" 256, "512" 512, "1K" 1024, "2K" 2048, "4K" 4096, \
  "8K" 8192, "16K" 16384, "32K" 32768, "64K" 65536, "128K" 131072, \
  "256K" 262144, "512K" 524288, "1M" 1048576)
set ytics ("1 µs" 1e-6, "10 µs" 1e-5, "100 µs" 1e-4, "1 ms" 1e-3, \
  "10 ms" 1e-2, "100 ms" 0.1, "1 s" 1, "10 s" 10, "100 s" 100, "1000 s" 1000)
set mytics 10
set offsets graph 0.02, graph 0.02, 0, 0
set grid xtics ytics linetype 1 linewidth 0.7 linecolor rgb "#e0e0e0"
set border 3 linecolor rgb "#606060"
set tics nomirror
set key below spacing 1.3

set style line 1 linecolor rgb "#d1495b" linewidth 2 pointtype 5 pointsize 1.1
set style line 2 linecolor rgb "#74b3ce" linewidth 2 pointtype 7 pointsize 1.2
set style line 3 linecolor rgb "#09577f" linewidth 2 pointtype 7 pointsize 1.2
set style line 4 linecolor rgb "#7fb069" linewidth 2 pointtype 9 pointsize 1.2
set style line 5 linecolor rgb "#3d5a2a" linewidth 2 pointtype 9 pointsize 1.2

# The first block is exact attention where that was measured at all.
stats series using 1:2 nooutput
first = exists("ARG3") && ARG3 eq "exact" ? 1 : 2
plot for [i = 0:STATS_blocks - 1] series index i using 1:2 \
  with linespoints linestyle first + i title columnheader(1)
