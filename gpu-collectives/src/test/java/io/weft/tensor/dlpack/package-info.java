/** Tests of DLPack, one of them with numpy as an independent consumer. */
package io.weft.tensor.dlpack;
