/** Tests of descriptors that are passed between processes. */
package io.weft.device.descriptor;
