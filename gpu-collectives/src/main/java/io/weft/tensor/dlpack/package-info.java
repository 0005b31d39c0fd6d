/**
 * Exports tensors to other libraries by DLPack. A DLPack structure in native memory contains a
 * tensor's address, type and shape, and the function that returns it.
 *
 * <p>{@link io.weft.tensor.dlpack.Dlpack#export} creates a structure. From then on it belongs to
 * the consumer, which calls its deleter once, on any thread. The exported memory must stay until
 * then; the exporter gets a callback. This needs JNA, which is loaded with the first export.
 *
 * <p>Format: <a href="https://dmlc.github.io/dlpack/latest/c_api.html">DLPack C API</a>.
 */
package io.weft.tensor.dlpack;
