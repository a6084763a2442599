// The transpose of a matrix through a tile in shared memory, whose rows are PITCH elements apart: at 32 all elements of
// a column lie in one bank, at 33 in 32 of them.
template <int PITCH>
__global__ void transposed(const float *x, float *y, int rows, int columns)
{
    __shared__ float tile[32 * PITCH];
    int column = blockIdx.x * 32 + threadIdx.x, row = blockIdx.y * 32 + threadIdx.y;
    for (int i = 0; i < 32; i += 8)
        if (row + i < rows && column < columns)
            tile[(threadIdx.y + i) * PITCH + threadIdx.x] = x[(row + i) * columns + column];
    __syncthreads();
    column = blockIdx.y * 32 + threadIdx.x, row = blockIdx.x * 32 + threadIdx.y;
    for (int i = 0; i < 32; i += 8)
        if (row + i < columns && column < rows)
            y[(row + i) * rows + column] = tile[threadIdx.x * PITCH + threadIdx.y + i];
}
