/**
 * What system tests stand on: Spark homes made from Maven's jars, clusters in this JVM and in
 * processes of their own, applications submitted as a user submits them, signals, small file
 * systems, and the check that nothing is left behind.
 *
 * <p>Tests run in one thread. Whoever starts a process, a session or a mount closes it; {@link
 * io.weft.tests.support.LeakCheck} fails the class of tests that did not.
 */
package io.weft.tests.support;
