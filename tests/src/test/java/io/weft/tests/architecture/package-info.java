/**
 * Dependencies between modules, and coding rules of all their sources, checked on class files and
 * source files.
 */
package io.weft.tests.architecture;
