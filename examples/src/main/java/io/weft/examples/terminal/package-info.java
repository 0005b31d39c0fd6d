/**
 * Text for people: tables, units and a progress line. Start at {@code TextTable}, {@code Units} and
 * {@code Progress}. No threads, nothing to free.
 */
package io.weft.examples.terminal;
