/** Tests of the command {@code bin/weft} up to the start of the program. */
package io.weft.tests.command;
