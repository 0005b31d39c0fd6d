/** What the command {@code bin/weft} does before it runs anything. */
package io.weft.tests.command;
