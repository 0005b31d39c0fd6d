/**
 * What the modules may know of each other, and the habits of all their sources, checked over class
 * files and source files.
 */
package io.weft.tests.architecture;
