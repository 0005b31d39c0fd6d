/**
 * How elements are combined: reductions over raw memory, and the 16-bit floats.
 *
 * <p>A {@code Reduction} holds scratch tiles and serves one thread at a time; the rest is
 * stateless. Nothing here owns the memory it works on, and nothing checks addresses.
 */
package io.weft.collectives.arithmetic;
