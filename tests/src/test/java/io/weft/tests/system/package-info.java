/**
 * Weft on real clusters of several executor processes, as a user runs it: the shaded jar, one
 * setting, and the corners and faults that the issues name. Every class opens a {@link
 * io.weft.tests.support.Workspace}, which fails the class when anything is left behind.
 */
package io.weft.tests.system;
