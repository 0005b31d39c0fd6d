/** Tests of descriptors that go from process to process. */
package io.weft.device.descriptor;
