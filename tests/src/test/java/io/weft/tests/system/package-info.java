/**
 * Tests of Weft on real clusters of several executor processes, as a user runs it: the shaded jar,
 * one setting, and edge cases and faults. Every class opens a {@link
 * io.weft.tests.support.Workspace}, which fails the class if anything is left behind.
 */
package io.weft.tests.system;
