/** Tests of device blocks. Applications test the complete path. */
package io.weft.deviceblocks;
