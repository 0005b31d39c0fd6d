/**
 * The command line {@code weft}: the demo and the benchmarks. This package only parses; each
 * command lives in a package of its own. Everything runs on the main thread except what {@code
 * side} describes; folders and processes are freed by the command that made them, and by a shutdown
 * hook when it is interrupted.
 */
package io.weft.examples;
