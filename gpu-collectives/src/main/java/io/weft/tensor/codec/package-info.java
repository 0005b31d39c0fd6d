/**
 * The encoded forms of tensors: unchanged, as smaller floats, or compressed without loss.
 *
 * <p>A {@code TensorEncoder} writes a header and then the pieces into memory of its caller, so that
 * a piece can be sent while the next one is computed. It only reads its tensor. A {@code
 * TensorDecoder} checks all fields before it uses them. Codecs are stateless, an encoder serves one
 * thread. The caller owns a decoded tensor.
 */
package io.weft.tensor.codec;
