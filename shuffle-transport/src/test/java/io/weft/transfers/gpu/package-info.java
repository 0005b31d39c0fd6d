/** Tests of this executor's GPU as an end of transfers, on doubles of the driver and of NCCL. */
package io.weft.transfers.gpu;
