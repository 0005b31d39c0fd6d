/**
 * What tensors look like on their way: as they are, as smaller floats, or packed without loss.
 *
 * <p>A {@code TensorEncoder} writes a header and then piece after piece into memory of its caller,
 * so that a piece can leave while the next one is computed; it only reads its tensor. A {@code
 * TensorDecoder} checks everything that it reads before it believes it. Codecs are stateless, an
 * encoder serves one thread. Whoever asks for a decoded tensor owns it.
 */
package io.weft.tensor.codec;
