/**
 * Tensors for libraries that know nothing of Weft, by DLPack: a structure in native memory that
 * says where a tensor lies, of what type and shape it is, and how to give it back.
 *
 * <p>{@link io.weft.tensor.dlpack.Dlpack#export} gives a structure away with its address. From then
 * on it is the consumer's, who calls its deleter once, on any thread; the exported memory has to
 * stay until then, and who exports it is told. This needs JNA, which is loaded with the first
 * export.
 *
 * <p>Format: <a href="https://dmlc.github.io/dlpack/latest/c_api.html">DLPack C API</a>.
 */
package io.weft.tensor.dlpack;
