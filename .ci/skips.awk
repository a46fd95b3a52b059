# Prints what was skipped and didn't pass in another step: awk -f .ci/skips.awk PASSED SKIPPED
# A line of PASSED is a package and a test; one of SKIPPED is a step, a package and a test, and the reason, or a step and a reason.
FILENAME == ARGV[1] { passed[$0]; next }
{
  test = $0
  sub(/^[^:]*: /, "", test)
  sub(/: .*/, "", test)
  if (!(test in passed)) print "  " $0
}
