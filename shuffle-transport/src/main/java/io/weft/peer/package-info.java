/**
 * Other executors as this one sees them: their addresses and the way to their blocks. Values, and a
 * thread-safe list of them; nothing to free.
 */
package io.weft.peer;
