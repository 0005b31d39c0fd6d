/**
 * Other executors as this one sees them: their addresses, their GPUs, the way to their blocks and
 * arrays, and the rules by which a way is chosen. Values, and a thread-safe list of them; nothing
 * to free.
 */
package io.weft.peer;
