/** Names of spark-rapids, with nothing behind them. */
package com.nvidia.spark;
