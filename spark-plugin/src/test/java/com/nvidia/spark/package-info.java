/** Empty stand-ins for spark-rapids' classes. */
package com.nvidia.spark;
