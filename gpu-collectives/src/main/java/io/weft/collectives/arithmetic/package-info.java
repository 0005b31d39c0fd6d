/**
 * How elements are combined: reductions over raw memory, and the 16-bit and 8-bit floats.
 *
 * <p>Start with {@link io.weft.collectives.arithmetic.Reduction}. {@link
 * io.weft.collectives.arithmetic.Conversion} widens and narrows the 16-bit floats.
 *
 * <p>A {@code Reduction} holds scratch tiles and serves one thread at a time; the other classes are
 * stateless. Nothing here owns memory or checks addresses.
 */
package io.weft.collectives.arithmetic;
