// Images from a folder, an archive or NumPy arrays, all of one size.
#pragma once

#include <memory>
#include <string>

#include "reformer/data/cache.h"

namespace reformer {

// What a member's name says about it.
enum class ImageSplit : char { kTrain = 't', kValidation = 'v', kTest = 'e' };

// By the first part of the name that begins with one of these words, which ends
// there or before something other than a letter: val, valid or validation;
// test; and otherwise train ("valid/7.png", "val_data.npz/data.npy").
ImageSplit split_named(const std::string& name);

// The payload: [images, image_size, image_size, 3] sub-pixels, in the order of
// Collection. The labels: an ImageSplit for each image.
//
// Taken are PNG and JPEG files, each as square_image makes it, and the rows of
// .npy arrays [n, 3 side side] of uint8, planes of red, green and blue, as
// ImageNet64 has them in its .npz files (the arrays named labels and mean are
// left out). Damaged images are skipped and counted: `observer` is told.
// Throws Error when more than 1% are, or there is none.
std::shared_ptr<const CacheFile> open_images(const std::string& path,
                                             int64_t image_size,
                                             const std::string& cache_folder,
                                             DecodeObserver& observer);

}  // namespace reformer
