/** Tests of DLPack, one of them with numpy as a consumer that shares no code with Weft. */
package io.weft.tensor.dlpack;
