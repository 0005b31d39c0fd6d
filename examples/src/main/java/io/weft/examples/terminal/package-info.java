/** Text for people: tables, units and a progress line. No threads, nothing to free. */
package io.weft.examples.terminal;
