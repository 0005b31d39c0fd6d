/** Reading blocks: requests, their flow and the chunks they become. */
package io.weft.transfer;
