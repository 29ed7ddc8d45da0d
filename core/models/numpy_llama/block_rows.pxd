# Declarations of `block_rows`: the products in the vector instructions of x86-64 processors since 2013 (AVX2 and FMA).
#
# Compilers make nothing like it of a loop in C: they take the unpacking of an integer apart. The instructions are used
# only where the processor says that it has them, so a wheel runs on every one.

cdef extern from * nogil:
    """
    #if defined(__x86_64__) && defined(__GNUC__)
    #include <immintrin.h>

    #define TOOLGRAMMAR_VECTOR __attribute__((target("avx2,fma")))

    static int toolgrammar_has_vectors(void) {
        return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    }

    /* The products of one row with n vectors. Each integer is unpacked once, and a block's scale is applied to the sums
       of the block; its offset, to the sum of the vector's elements. */
    TOOLGRAMMAR_VECTOR __attribute__((always_inline))
    static inline void toolgrammar_row(
        const signed char *q, const float *scales, const float *offsets, Py_ssize_t blocks, Py_ssize_t size,
        const float *vectors, const float *sums, float *out, Py_ssize_t stride, const int n
    ) {
        Py_ssize_t columns = blocks * size;
        __m256 total[4];
        float rest[4];
        for (int i = 0; i < n; i++) { total[i] = _mm256_setzero_ps(); rest[i] = 0; }
        for (Py_ssize_t block = 0; block < blocks; block++) {
            __m256 even[4], odd[4], scale = _mm256_set1_ps(scales[block]);
            for (int i = 0; i < n; i++) even[i] = odd[i] = _mm256_setzero_ps();
            for (Py_ssize_t at = block * size; at < (block + 1) * size; at += 16) {
                __m256 a = _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)(q + at))));
                __m256 b = _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)(q + at + 8))));
                for (int i = 0; i < n; i++) {
                    even[i] = _mm256_fmadd_ps(a, _mm256_loadu_ps(vectors + i * columns + at), even[i]);
                    odd[i] = _mm256_fmadd_ps(b, _mm256_loadu_ps(vectors + i * columns + at + 8), odd[i]);
                }
            }
            for (int i = 0; i < n; i++) {
                total[i] = _mm256_fmadd_ps(scale, _mm256_add_ps(even[i], odd[i]), total[i]);
                rest[i] += offsets[block] * sums[i * blocks + block];
            }
        }
        for (int i = 0; i < n; i++) {
            float lanes[8];
            _mm256_storeu_ps(lanes, total[i]);
            for (int j = 0; j < 8; j++) rest[i] += lanes[j];
            out[i * stride] = rest[i];
        }
    }

    /* The products of all rows with all vectors; sums are those of the vectors' elements in each block. */
    TOOLGRAMMAR_VECTOR
    static void toolgrammar_products(
        const signed char *q, const float *scales, const float *offsets, Py_ssize_t rows, Py_ssize_t blocks,
        Py_ssize_t size, const float *vectors, const float *sums, Py_ssize_t count, float *out
    ) {
        Py_ssize_t columns = blocks * size;
        for (Py_ssize_t row = 0; row < rows; row++, q += columns, scales += blocks, offsets += blocks) {
            Py_ssize_t i = 0;
            for (; i + 4 <= count; i += 4)
                toolgrammar_row(q, scales, offsets, blocks, size, vectors + i * columns, sums + i * blocks,
                                out + i * rows + row, rows, 4);
            for (; i < count; i++)
                toolgrammar_row(q, scales, offsets, blocks, size, vectors + i * columns, sums + i * blocks,
                                out + i * rows + row, rows, 1);
        }
    }
    #else
    static int toolgrammar_has_vectors(void) { return 0; }
    #define toolgrammar_products(...) ((void)0)
    #endif
    """
    bint has_vectors "toolgrammar_has_vectors" ()
    void products "toolgrammar_products" (
        const signed char *q, const float *scales, const float *offsets, Py_ssize_t rows, Py_ssize_t blocks,
        Py_ssize_t size, const float *vectors, const float *sums, Py_ssize_t count, float *out
    )
