/**
 * The base of system tests: Spark homes made from Maven's jars, and clusters in this JVM and in
 * separate processes. It also has applications submitted as a user submits them, signals, small
 * file systems, and leak checks.
 *
 * <p>Tests run in one thread. The code that starts a process, a session or a mount must close it;
 * {@link io.weft.tests.support.Workspace} fails a class of tests that leaves something open.
 */
package io.weft.tests.support;
