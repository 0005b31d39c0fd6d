/**
 * The reference implementation: ranks are threads of one process, and simple code computes each
 * collective element by element. Tests compare the other implementations with it, and can run code
 * above communicators on it.
 *
 * <p>The last thread to arrive computes for all. Nothing outlives the communicators of a gang.
 */
package io.weft.collectives.local;
